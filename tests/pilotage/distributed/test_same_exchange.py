"""Instances that are about to exchange different things say so, instead of waiting for each other."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import pilotage
from pilotage.distributed.peers import peers_here
from pilotage.distributed.same_exchange import BEFORE_COMPILING, WITH_WEIGHTS, gather_at
from pilotage.errors import DistributedError


def group_of(*others):
    calls = []

    def gather(value):
        calls.append("gather")
        return [value, *others]

    return SimpleNamespace(kind="Rank", wait_for_all=lambda: calls.append("wait"), gather=gather, calls=calls)


def test_values_are_gathered_once_everybody_is_there():
    group = group_of((WITH_WEIGHTS, {"replicas": 2}, 2), (WITH_WEIGHTS, {"replicas": 2}, 3))
    assert gather_at(WITH_WEIGHTS, group, 1, {"replicas": 2}) == [1, 2, 3]
    assert group.calls == ["wait", "gather"]


def test_the_first_process_at_another_moment_is_named():
    group = group_of((WITH_WEIGHTS, {}, 2), (BEFORE_COMPILING, {}, None), (BEFORE_COMPILING, {}, None))
    with pytest.raises(DistributedError, match=r"Rank 2 is about to compile .* but this one to exchange its weights"):
        gather_at(WITH_WEIGHTS, group, 1)


def test_the_first_process_with_another_setting_is_named():
    group = group_of((WITH_WEIGHTS, {"check": "first", "replicas": 2}, 2), (WITH_WEIGHTS, {"check": 3}, 3))
    with pytest.raises(DistributedError, match="Rank 1 has replicas=2, but this one replicas=1"):
        gather_at(WITH_WEIGHTS, group, 1, {"check": "first", "replicas": 1})


def train(options):
    options = options[peers_here().world.rank]
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    step = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), loss=torch.nn.MSELoss(), distributed=True, **options
    )
    try:
        step(torch.randn(4, 4), torch.randn(4, 4))
    except DistributedError as error:
        return str(error)
    return "trained"


@pytest.mark.slow
@pytest.mark.parametrize("other", ["graph", *(pytest.param(tier, marks=pytest.mark.long) for tier in ("eager", None))])
def test_instances_with_and_without_the_tier_compiled_are_refused_before_they_compile(world, other):
    for_compiled, for_other = world(train, 2, options=[{"tier": "compiled"}, {"tier": other}])
    assert for_compiled.startswith("Rank 1 is about to exchange its weights, but this one to compile the program")
    assert for_other.startswith("Rank 0 is about to compile the program before its first call")
    assert "Give all instances the same tier, by the option tier or by PILOTAGE_TIER" in for_other


DIFFERENT = {
    "check": ({"check": "off"}, {}, "check='first'", "check='off'"),
    "comparison of the eager tier": ({"tier": "eager"}, {"tier": "graph"}, "check='first'", "check='off'"),
    "accumulation": ({"gradient_accumulation": 2}, {}, "gradient_accumulation=1", "gradient_accumulation=2"),
    "replicas": ({"replicas": 2}, {}, "replicas=1", "replicas=2"),
    "calls": ({"device_iterations": 4}, {}, "device_iterations=1", "device_iterations=4"),
    "reduction": ({"reduction": "sum"}, {}, "reduction='mean'", "reduction='sum'"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [next(iter(DIFFERENT)), *(pytest.param(case, marks=pytest.mark.long) for case in list(DIFFERENT)[1:])]
)
def test_instances_with_other_options_are_refused_before_the_first_step(world, case):
    one, other, there, here = DIFFERENT[case]
    for_one, for_other = world(train, 2, options=[one, other])
    assert for_one.startswith(f"Rank 1 has {there}, but this one {here}. Give all instances the same options")
    assert for_other.startswith(f"Rank 0 has {here}, but this one {there}.")


@pytest.mark.long
def test_instances_in_the_tiers_graph_and_eager_train_together_without_a_comparison(world):
    options = [{"tier": "graph", "check": "off"}, {"tier": "eager", "check": "off"}]
    assert world(train, 2, options=options) == ["trained"] * 2
