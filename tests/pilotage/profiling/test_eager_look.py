"""A look at plain PyTorch: every operation of an update, and nothing changed by looking."""

import copy

import pytest
import torch
from torch import nn

from pilotage.profiling.eager_look import EagerLook


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor, look: EagerLook | None = None
) -> None:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    if look is not None:
        look.is_updating = True
    optimizer.step()


@pytest.fixture(scope="module")
def looked():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    twin = copy.deepcopy(model)
    optimizer, other = (torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9) for each in (model, twin))
    batches = [torch.randn(4, 8) for _ in range(3)]
    look = EagerLook(torch.device("cpu"), lambda: "somewhere")
    step(model, optimizer, batches[0])
    for batch in batches[1:]:
        look.begin(model, optimizer)
        step(model, optimizer, batch, look)
        look.end()
    for batch in batches:
        step(twin, other, batch)
    return model, twin, look


def test_looking_changes_no_weight(looked):
    model, twin, _ = looked
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), twin.parameters(), strict=True))


def test_every_operation_is_seen_in_each_update(looked):
    _, _, look = looked
    sightings = look.table.sightings
    assert [each.what.name for each in sightings].count("aten.addmm") == 2
    assert {each.what.phase for each in sightings} == {"forward", "backward", "update"}
    assert all(len(each.seconds) == 2 for each in sightings)
    first = next(each.what for each in sightings if each.what.name == "aten.addmm")
    assert (first.module, first.output, first.flops) == ("somewhere", "f32[4,16]", 2 * 4 * 8 * 16)
    backward = [each.what for each in sightings if each.what.phase == "backward"]
    assert any(each.module == "somewhere" and each.line is not None for each in backward)


def test_memory_is_sorted_into_what_it_is_for(looked):
    _, _, look = looked
    seen = {name for each in look.table.sightings for name, size in each.by_category.items() if size}
    assert {"weights", "gradients", "optimizer", "activations"} <= seen
    peak = look.table.peak
    parameters = 4 * (8 * 16 + 16 + 16 * 2 + 2)
    assert peak.by_category["weights"] == parameters
    assert peak.by_category["optimizer"] == parameters


def test_an_update_with_other_operations_does_not_mix_up_the_table():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    look = EagerLook(torch.device("cpu"), str)
    for is_other in (False, True):
        look.begin(model, optimizer)
        result = model(torch.randn(2, 4))
        (result.exp().sum() if is_other else result.sum()).backward()
        look.end()
    counts = [len(each.seconds) for each in look.table.sightings]
    assert counts[0] == 2
    assert counts[-1] == 1
