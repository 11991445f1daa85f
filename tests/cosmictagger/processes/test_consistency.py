"""Comparing weights and events across processes."""

import torch

from cosmictagger.processes.consistency import ConsistencyCheck
from cosmictagger.processes.process_group import Processes
from pilotage import World


class Mirrored(Processes):
    """Two processes with the same state and different events."""

    def gather(self, value):
        entries, sums = value
        return [value, ([entry + 1 for entry in entries], sums)]


def test_equal_weights_are_noted_once_for_each_step():
    consistency = ConsistencyCheck(Mirrored(world=World(rank=0, size=2), backend="gloo"), ["w"])
    for step in (1, 5, 5, 10):
        consistency.check(step, [4], {"w": torch.randn(7), "norm.running_mean": torch.randn(2)})
    assert consistency.steps == [1, 5, 10]
    assert consistency.describe(2) == "mean over 4 replicas by gloo; weights equal everywhere after step 1, 5, 10"


def test_many_steps_are_abbreviated():
    consistency = ConsistencyCheck(Mirrored(world=World(rank=0, size=2), backend="gloo"), [])
    for step in range(9):
        consistency.check(step, [4], {})
    assert consistency.describe(1).endswith("after step 0, 1, …, 7, 8")


def test_one_process_has_nothing_to_compare():
    consistency = ConsistencyCheck(Processes(), ["w"])
    consistency.check(1, [0], {})
    assert consistency.describe(1) == "none: one instance"
    assert consistency.describe(3) == "mean over 3 replicas in one instance"
