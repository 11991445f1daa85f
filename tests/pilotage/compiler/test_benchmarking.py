"""What is measured beside other programs is what a run takes without them."""

from __future__ import annotations

import itertools
import time

import pytest
import torch

from pilotage.compiler.benchmarking import best_seconds, best_seconds_in_threads

QUICK, SLOW = 0.001, 0.02


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_run_that_others_seldom_leave_alone_counts_as_it_is_alone():
    durations = itertools.cycle([SLOW] * 4 + [QUICK])
    found = best_seconds({"disturbed": lambda: time.sleep(next(durations))}, torch.device("cpu"))
    assert QUICK <= found["disturbed"] < SLOW / 2


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("quick_at", [1, 2])
def test_each_way_is_measured_with_the_better_number_of_threads(quick_at):
    def one():
        time.sleep(QUICK if torch.get_num_threads() == quick_at else SLOW)

    def other():
        time.sleep(QUICK if torch.get_num_threads() != quick_at else SLOW)

    found = best_seconds_in_threads({"one": one, "other": other}, 2)
    assert max(found.values()) < SLOW / 2


@pytest.mark.usefixtures("threads")
def test_no_more_threads_are_taken_than_are_given():
    seen = set()
    best_seconds_in_threads({"counting": lambda: seen.add(torch.get_num_threads())}, 1)
    assert seen == {1}
