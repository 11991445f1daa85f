from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.launcher import guard

pytestmark = pytest.mark.slow


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 3))
def test_processes_have_separate_cards_as_long_as_there_are_enough(cards, instances, stages):
    names = [str(number) for number in range(cards)]
    shares = [guard.card_of(names, rank, stage, stages) for rank in range(instances) for stage in range(stages)]
    assert set(shares) <= set(names)
    if instances * stages <= cards:
        assert shares == names[: instances * stages]


@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 4))
def test_replicas_have_separate_cards_as_long_as_there_are_enough(cards, instances, replicas):
    names = [str(number) for number in range(cards)]
    request = {"instances_per_host": instances, "replicas": replicas, "stage": 0, "stages": 1}
    shares = [guard.cards_for(names, request | {"local_rank": rank}) for rank in range(instances)]
    given_out = [name for share in shares for name in share]
    assert {len(share) for share in shares} == {max(1, min(replicas, cards // instances))}
    assert len(set(given_out)) == min(len(given_out), cards)
    assert guard.cards_for(names, request | {"local_rank": 0, "stages": 2}) == ["0"]


def test_cards_that_the_user_has_chosen_are_not_changed(tmp_path):
    for name in ("0000:17:00.0", "0000:65:00.0"):
        (tmp_path / name).mkdir()
    assert guard.cards_of({}, tmp_path) == ["0", "1"]
    assert guard.cards_of({"CUDA_VISIBLE_DEVICES": "1"}, tmp_path) == []
    assert guard.cards_of({}, tmp_path / "absent") == []


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_of_processors_are_read(numbers):
    assert guard.processors(",".join(map(str, sorted(numbers))) + "\n") == numbers


def test_ranges_of_processors_are_read():
    assert guard.processors("0-3,8\n") == {0, 1, 2, 3, 8}
    assert guard.processors("\n") == set()


def test_an_instance_stays_on_one_node(tmp_path):
    before = os.sched_getaffinity(0)
    for number, cpu in enumerate(sorted(before)):
        node = Path(tmp_path, f"node{number}")
        node.mkdir()
        (node / "cpulist").write_text(f"{cpu}\n")
    try:
        guard.bind_to_node(len(before), tmp_path)
        assert os.sched_getaffinity(0) == {min(before)}
    finally:
        os.sched_setaffinity(0, before)


def test_threads_are_shared_unless_the_user_has_chosen():
    request = {"numa_aware": False, "instances_per_host": 1000, "local_rank": 0, "replicas": 1, "stage": 0, "stages": 1}
    assert guard.resource_shares({}, request)["OMP_NUM_THREADS"] == "1"
    assert guard.resource_shares({}, request | {"instances_per_host": 1})["OMP_NUM_THREADS"] == str(
        len(os.sched_getaffinity(0))
    )
    assert guard.resource_shares({}, request | {"instances_per_host": 1, "stages": 1000})["OMP_NUM_THREADS"] == "1"
