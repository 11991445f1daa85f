from __future__ import annotations

import logging

import pytest

from pilotage.distributed.environments.poprun import poprun_variables
from pilotage.distributed.single_instance import SingleInstance, is_instance, log_in_single_instance
from pilotage.distributed.world import World


def test_a_single_process_logs():
    assert is_instance(0, {})


def test_only_the_first_stage_of_one_instance_logs():
    worlds = [World(rank=rank, size=2, stages_per_replica=2, stage=stage) for rank in (0, 1) for stage in (0, 1)]
    speaking = [is_instance(instance, poprun_variables(world)) for instance in (0, 1) for world in worlds]
    assert speaking == [True, False, False, False, False, False, True, False]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_line_is_logged_once_in_the_whole_job(rank, monkeypatch, caplog):
    for name, value in poprun_variables(World(rank=rank, size=2)).items():
        monkeypatch.setenv(name, value)
    logger = logging.getLogger("of.a.user")
    with caplog.at_level(logging.INFO):
        log_in_single_instance("from the first", logger=logger)
        log_in_single_instance("from the second", logger=logger, instance=1)
    assert caplog.messages == [("from the first", "from the second")[rank]]
    assert bool(SingleInstance().filter(logging.makeLogRecord({}))) is (rank == 0)
