from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pilotage.optim.reading import read_optimizer
from pilotage.program.layout import StateLayout
from pilotage.program.optimizer_shards import OptimizerShards, assign_owners

SIZES = st.dictionaries(st.text("abcdef", min_size=1), st.integers(1, 1000), min_size=1, max_size=30)


@given(SIZES, st.integers(1, 5), st.integers(0, 500))
def test_every_large_parameter_has_one_owner_and_loads_differ_by_one_parameter_at_most(elements, instances, minimum):
    owners = assign_owners(elements, instances, minimum)
    assert set(owners) == {name for name, size in elements.items() if size >= minimum}
    assert all(0 <= owner < instances for owner in owners.values())
    loads = [sum(elements[n] for n, owner in owners.items() if owner == instance) for instance in range(instances)]
    assert max(loads) - min(loads) <= max((elements[name] for name in owners), default=0)


def test_an_instance_holds_the_state_of_its_own_shard_and_of_unsharded_parameters():
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, bias=False))
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.Adam(module.parameters(), lr=0.1), names)
    owners = {"0.weight": 0, "1.weight": 1}
    for instance, expected in ((0, {"0.weight", "0.bias"}), (1, {"1.weight", "0.bias"})):
        shards = OptimizerShards(owners=owners, instance=instance, broadcast=lambda tensors, source: None)
        layout = shards.layout(StateLayout.of(module, plan))
        assert {slot.parameter for slot in layout.slots} == expected
        assert {name for group in shards.plan(plan).groups for name in group.parameters} == expected
        assert set(layout.trained) == set(names.values())


def test_updated_weights_are_broadcast_by_their_owner():
    mine = {"a": torch.zeros(2, 3), "b": torch.ones(4), "c": torch.full((2,), 5.0, dtype=torch.float64)}
    sent = {1: torch.arange(6.0), 0: torch.ones(4)}

    def broadcast(tensors, source):
        (flat,) = tensors
        if source == 1:
            flat.copy_(torch.full_like(flat, 7.0) if flat.dtype == torch.float64 else sent[source])

    OptimizerShards(owners={"a": 1, "b": 0, "c": 1}, instance=0, broadcast=broadcast).broadcast_updates(mine)
    assert mine["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert mine["b"].tolist() == [1] * 4
    assert mine["c"].tolist() == [7, 7]
