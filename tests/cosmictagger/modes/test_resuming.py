"""Choosing the checkpoint to resume from."""

import logging

import pytest

from cosmictagger.errors import CheckpointError
from cosmictagger.modes.resuming import RESTARTS, check_seed, find_checkpoint, is_restarted
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints
from pilotage import World


def state(step):
    return {"global_step": step, "state_dict": {}}


class Instance(Processes):
    """One of two instances; the other has checkpoints of other steps."""

    def gather(self, value):
        return [value, [5, 1]]


def test_the_runs_checkpoint_takes_precedence_over_the_configured_one(tmp_path):
    own, other = Checkpoints(tmp_path / "own"), Checkpoints(tmp_path / "other")
    other.save(7, state(7))
    assert find_checkpoint(own, "", Processes()) is None
    found = find_checkpoint(own, str(other.folder), Processes())
    assert (found.state["global_step"], found.is_own) == (7, False)
    own.save(2, state(2))
    found = find_checkpoint(own, str(other.folder), Processes())
    assert (found.state["global_step"], found.is_own) == (2, True)


def test_an_index_that_names_an_older_checkpoint_is_not_followed_silently(tmp_path, caplog):
    own = Checkpoints(tmp_path)
    for step in (2, 4):
        own.save(step, state(step))
    with caplog.at_level(logging.WARNING):
        assert find_checkpoint(own, "", Processes()).state["global_step"] == 4
        assert not caplog.records
        (tmp_path / "checkpoint").write_text("latest: model-2.ckpt\n2: model-2.ckpt\n")
        assert find_checkpoint(own, "", Processes()).state["global_step"] == 4
    assert "names model-2.ckpt as the latest checkpoint, but the newest is model-4.ckpt" in caplog.text


def test_resuming_with_another_seed_is_refused(tmp_path):
    own = Checkpoints(tmp_path)
    own.save(2, state(2) | {"data": {"train": {"seed": 3}}})
    found = find_checkpoint(own, "", Processes())
    check_seed(3, found)
    check_seed(0, found)
    with pytest.raises(CheckpointError, match=r"data\.seed=9, but the run started with 3"):
        check_seed(9, found)
    check_seed(9, find_checkpoint(Checkpoints(tmp_path / "new"), str(tmp_path), Processes()))


def test_instances_resume_from_the_newest_common_step(tmp_path):
    mine = Checkpoints(tmp_path, instance=0)
    for step in (1, 5, 10):
        mine.save(step, state(step))
    processes = Instance(world=World(rank=0, size=2), per_instance_files=True)
    found = find_checkpoint(mine, "", processes)
    assert (found.path.name, found.state["global_step"]) == ("model-5-0.ckpt", 5)


def test_instances_without_a_common_step_are_refused(tmp_path):
    mine = Checkpoints(tmp_path, instance=0)
    mine.save(3, state(3))
    with pytest.raises(CheckpointError, match=r"No step in .*instance 0: \[3\]; instance 1: \[5, 1\]"):
        find_checkpoint(mine, "", Instance(world=World(rank=0, size=2), per_instance_files=True))


def test_instances_killed_in_their_first_save_start_over(tmp_path):
    class First(Processes):
        def gather(self, value):
            return [value, []]

    mine = Checkpoints(tmp_path, instance=0)
    mine.save(3, state(3))
    assert find_checkpoint(mine, "", First(world=World(rank=0, size=2), per_instance_files=True)) is None


@pytest.mark.parametrize("name", RESTARTS)
def test_a_restart_by_a_launcher_is_detected(monkeypatch, name):
    for each in RESTARTS:
        monkeypatch.delenv(each, raising=False)
    assert not is_restarted()
    monkeypatch.setenv(name, "0")
    assert not is_restarted()
    monkeypatch.setenv(name, "1")
    assert is_restarted()
