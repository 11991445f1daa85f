from __future__ import annotations

import inspect
import logging

import pytest
import torch

from poptorch.optim import SGD


@pytest.fixture
def parameters():
    return [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]


def test_its_arguments_are_torchs_followed_by_poptorchs():
    assert list(inspect.signature(SGD).parameters)[:12] == [
        "params",
        "lr",
        "momentum",
        "dampening",
        "weight_decay",
        "nesterov",
        "loss_scaling",
        "velocity_scaling",
        "use_combined_accum",
        "accum_type",
        "velocity_accum_type",
        "max_grad_norm",
    ]


def test_the_learning_rate_is_required(parameters):
    with pytest.raises(TypeError, match="lr"):
        SGD(parameters)


def test_velocity_scaling_without_a_combined_accumulator_is_ignored_with_a_warning(parameters, caplog):
    with caplog.at_level(logging.WARNING, "poptorch::python"):
        optimizer = SGD(parameters, lr=0.1, velocity_scaling=8.0)
    assert "velocity_scaling is ignored" in caplog.text
    assert "velocity_scaling" not in optimizer.param_groups[0]
    assert optimizer.variable_attrs.isConstant("velocity_scaling")


def test_velocity_scaling_belongs_to_the_groups_of_a_combined_accumulator(parameters):
    groups = [{"params": parameters[0]}, {"params": parameters[1], "velocity_scaling": 4.0}]
    optimizer = SGD(groups, lr=0.1, use_combined_accum=True, velocity_scaling=8.0)
    assert [group["velocity_scaling"] for group in optimizer.param_groups] == [8.0, 4.0]
    assert not optimizer.variable_attrs.isConstant("velocity_scaling")
    optimizer.add_param_group({"params": torch.nn.Parameter(torch.ones(1))})
    assert optimizer.param_groups[2]["velocity_scaling"] == 8.0


def test_velocity_scaling_of_a_combined_accumulator_is_one_by_default(parameters, caplog):
    optimizer = SGD(parameters, lr=0.1, use_combined_accum=True)
    assert optimizer.param_groups[0]["velocity_scaling"] == 1.0
    assert optimizer.variable_attrs.isConstant("velocity_scaling")
    assert not caplog.text


def test_a_combined_accumulator_gives_the_same_numbers(parameters):
    others = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]
    plain = SGD(parameters, lr=0.1, momentum=0.9)
    combined = SGD(others, lr=0.1, momentum=0.9, use_combined_accum=True, velocity_scaling=128.0)
    for _ in range(3):
        for parameter in (*parameters, *others):
            parameter.grad = parameter.detach() * 2
        plain.step()
        combined.step()
    assert all(torch.equal(a, b) for a, b in zip(parameters, others, strict=True))
