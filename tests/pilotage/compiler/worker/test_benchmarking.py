"""Timing on a busy machine gives the times of an idle one."""

from __future__ import annotations

import itertools
import time

import pytest
import torch

from pilotage.compiler.worker.benchmarking import best_seconds, best_seconds_in_threads

QUICK, SLOW = 0.001, 0.02


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_busy_machine_does_not_change_the_best_time():
    durations = itertools.cycle([SLOW] * 4 + [QUICK])
    found = best_seconds({"disturbed": lambda: time.sleep(next(durations))}, torch.device("cpu"))
    assert QUICK <= found["disturbed"] < SLOW / 2


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("quick_at", [1, 2])
def test_each_candidate_is_timed_with_its_best_number_of_threads(quick_at):
    def one():
        time.sleep(QUICK if torch.get_num_threads() == quick_at else SLOW)

    def other():
        time.sleep(QUICK if torch.get_num_threads() != quick_at else SLOW)

    found = best_seconds_in_threads({"one": one, "other": other}, 2)
    assert max(found.values()) < SLOW / 2


@pytest.mark.usefixtures("threads")
def test_at_most_the_given_number_of_threads_is_used():
    seen = set()
    best_seconds_in_threads({"counting": lambda: seen.add(torch.get_num_threads())}, 1)
    assert seen == {1}
