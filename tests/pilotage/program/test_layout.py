from __future__ import annotations

import pytest
import torch
from torch import nn

from pilotage.optim.families import Refinements
from pilotage.optim.following import FollowedOptimizer
from pilotage.optim.reading import read_optimizer
from pilotage.program.layout import Section, Slot, StateLayout, VariableValue, group_values, number_of, variable_values


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.norm = nn.BatchNorm1d(3)


def adam(module, **settings):
    return torch.optim.Adam(module.parameters(), lr=0.1, **settings)


def test_tied_tensors_are_kept_once_and_frozen_ones_are_not_trained():
    module = Tied()
    layout = StateLayout.of(module, FollowedOptimizer(adam(module), module).first_plan())
    names = {"frozen", "first.weight", "first.bias", "second.bias", "norm.weight", "norm.bias"}
    assert set(layout.parameters) == names
    assert list(layout.buffers) == ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert set(layout.parameters) - set(layout.trained) == {"frozen"}
    assert set(layout.slots) == {Slot(slot, name) for slot in ("exp_avg", "exp_avg_sq") for name in layout.trained}


def test_inference_has_no_optimizer_state():
    layout = StateLayout.of(Tied(), None)
    assert (layout.trained, dict(layout.slots), layout.values) == ((), {}, ())


def test_pooled_gradients_have_the_type_of_the_pool_and_no_gaps():
    class Gaps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 6, dtype=torch.float16)[:, ::2])

    module = Gaps()
    (piece,) = StateLayout.of(
        module, FollowedOptimizer(torch.optim.SGD(module.parameters(), lr=0.1), module).first_plan()
    ).section(Section.GRADIENTS)
    assert (piece.shape, piece.stride, piece.dtype) == ((4, 3), (3, 1), torch.float32)


def test_variable_values_are_those_of_the_plan():
    module = Tied()
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    optimizer = torch.optim.SGD(
        [{"params": module.first.parameters()}, {"params": module.norm.parameters(), "lr": 0.5}], lr=0.1, momentum=0.9
    )
    plan = read_optimizer(optimizer, names, refinements=Refinements(plan_constants=frozenset(), loss_scaling=4.0))
    values = variable_values(plan)
    numbers = {value: number_of(plan, value) for value in values}
    assert numbers[VariableValue(None, "loss_scaling")] == 4.0
    assert numbers[VariableValue(0, "lr")] == 0.1
    assert numbers[VariableValue(1, "lr")] == 0.5
    assert numbers[VariableValue(0, "momentum")] == 0.9
    assert VariableValue(0, "weight_decay") not in numbers
    tensors = {value: torch.tensor(number, dtype=torch.float64) for value, number in numbers.items()}
    given = group_values(plan.groups[1], 1, tensors)
    assert given["lr"] is tensors[VariableValue(1, "lr")]
    assert given["weight_decay"] == 0.0


@pytest.mark.parametrize("section", Section)
def test_every_section_has_a_specification_for_each_of_its_tensors(section):
    module = Tied()
    layout = StateLayout.of(module, FollowedOptimizer(adam(module, weight_decay=0.1), module).first_plan())
    counts = {
        Section.PARAMETERS: 6,
        Section.BUFFERS: 3,
        Section.SLOTS: 10,
        Section.COUNTERS: 1,
        Section.VALUES: 2,
        Section.GRADIENTS: 5,
    }
    assert len(layout.section(section)) == counts[section]
