"""Weights and events compared across processes."""

import torch

from cosmictagger.processes.agreement import Agreement
from cosmictagger.processes.together import Processes
from pilotage import World


class Mirrored(Processes):
    """Two processes that are in the same state, with events of their own."""

    def gather(self, value):
        entries, sums = value
        return [value, ([entry + 1 for entry in entries], sums)]


def test_equal_weights_are_noted_once_for_each_step():
    agreement = Agreement(Mirrored(world=World(rank=0, size=2), backend="gloo"), ["w"])
    for step in (1, 5, 5, 10):
        agreement.check(step, [4], {"w": torch.randn(7), "norm.running_mean": torch.randn(2)})
    assert agreement.steps == [1, 5, 10]
    assert agreement.in_words(2) == "mean over 4 replicas by gloo; weights equal everywhere after step 1, 5, 10"


def test_many_steps_are_told_in_few_words():
    agreement = Agreement(Mirrored(world=World(rank=0, size=2), backend="gloo"), [])
    for step in range(9):
        agreement.check(step, [4], {})
    assert agreement.in_words(1).endswith("after step 0, 1, …, 7, 8")


def test_one_process_has_nothing_to_compare():
    agreement = Agreement(Processes(), ["w"])
    agreement.check(1, [0], {})
    assert agreement.in_words(1) == "none: one instance"
    assert agreement.in_words(3) == "mean over 3 replicas in one instance"
