from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from pilotage.optim.adam import AdamRule
from pilotage.optim.sgd import SgdRule
from poptorch import optim
from poptorch.optim.handover import OptimizerReader, kind_of


@pytest.fixture
def module():
    return nn.Linear(2, 1)


@pytest.fixture
def names(module):
    return {id(parameter): name for name, parameter in module.named_parameters()}


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.WARNING, "poptorch::python")
    return caplog


class Derived(optim.SGD):
    pass


class DerivedFromTorch(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("is not run")


def test_an_optimizer_becomes_a_plan(module, names, log):
    optimizer = optim.AdamW(module.parameters(), lr=0.1, bias_correction=False, loss_scaling=4.0)
    plan = OptimizerReader().plan(optimizer, names)
    (group,) = plan.groups
    assert group.rule == AdamRule(
        decoupled_weight_decay=True,
        bias_correction=False,
        first_moment_dtype=torch.float32,
        second_moment_dtype=torch.float32,
    )
    assert group.parameters == ("weight", "bias")
    assert group.constants == {"beta1", "beta2", "eps", "weight_decay"}
    assert plan.loss_scaling == 4.0
    assert plan.constants == {"max_gradient_norm"}
    assert not log.text


def test_an_explicit_zero_momentum_may_change_later(module, names):
    (group,) = OptimizerReader().plan(optim.SGD(module.parameters(), lr=0.1, momentum=0.0), names).groups
    assert group.rule == SgdRule(momentum=True, momentum_dtype=torch.float32)
    assert "momentum" not in group.constants


def test_a_later_plan_keeps_what_was_compiled_as_variable(module, names):
    reader = OptimizerReader()
    compiled = reader.plan(torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), names)
    later = reader.plan(torch.optim.SGD(module.parameters(), lr=0.2, momentum=0.0), names, compiled=compiled)
    assert later.groups[0].constants == compiled.groups[0].constants
    assert later.groups[0].rule == compiled.groups[0].rule
    assert later.groups[0].values["lr"] == 0.2


def test_automatic_loss_scaling_varies_the_loss_scaling(module, names):
    reader = OptimizerReader(automatic_loss_scaling=True)
    assert reader.plan(optim.SGD(module.parameters(), lr=0.1), names).constants == {"max_gradient_norm"}


def test_other_optimizers_are_refused(module, names):
    with pytest.raises(AssertionError, match="Unsupported optimizer type"):
        OptimizerReader().plan(torch.optim.Adagrad(module.parameters()), names)


def test_amsgrad_of_torchs_adam_is_refused(module, names):
    with pytest.raises(ValueError, match="amsgrad"):
        OptimizerReader().plan(torch.optim.Adam(module.parameters(), amsgrad=True), names)


@pytest.mark.parametrize("kind", [Derived, DerivedFromTorch])
def test_a_derived_optimizer_is_read_like_its_base_with_one_warning(module, names, log, kind):
    reader = OptimizerReader()
    for _ in range(2):
        plan = reader.plan(kind(module.parameters(), lr=0.5), names)
    assert plan.groups[0].values["lr"] == 0.5
    assert log.text.count("Poptorch does not run Python optimizer code directly") == 1


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adam, optim.LAMB, optim.AdamW])
def test_known_optimizers_give_no_warning(module, names, log, kind):
    OptimizerReader().plan(kind(module.parameters(), lr=0.5), names)
    assert not log.text


def test_unexpected_attributes_give_one_warning(module, names, log):
    reader, optimizer = OptimizerReader(), optim.SGD(module.parameters(), lr=0.1)
    reader.plan(optimizer, names)
    optimizer.param_groups[0]["loss_scaling"] = 2.0
    for _ in range(2):
        reader.plan(optimizer, names)
    assert [record.getMessage() for record in log.records] == [
        "Ignoring unexpected group 0 attribute in SGD2 optimizer: ['loss_scaling']"
    ]
    assert log.records[0].levelno == logging.WARNING


def test_relaxed_checks_log_at_debug_level(module, names, caplog):
    caplog.set_level(logging.DEBUG, "poptorch::python")
    reader, optimizer = OptimizerReader(relaxed=True), optim.SGD(module.parameters(), lr=0.1)
    reader.plan(optimizer, names)
    optimizer.wings = 2
    reader.plan(optimizer, names)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        (torch.optim.SGD, {"lr": 0.1}, "SGD2"),
        (optim.SGD, {"lr": 0.1, "use_combined_accum": True}, "SGD1"),
        (optim.Adam, {}, "ADAM"),
        (optim.AdamW, {}, "ADAMW"),
        (optim.AdamW, {"bias_correction": False}, "ADAMW_NO_BIAS"),
        (optim.RMSprop, {}, "RMSPROP"),
        (optim.RMSprop, {"centered": True}, "RMSPROP_CENTERED"),
        (optim.LAMB, {}, "LAMB"),
        (optim.LAMB, {"bias_correction": False}, "LAMB_NO_BIAS"),
    ],
)
def test_messages_name_each_kind_of_optimizer(module, kind, settings, name):
    assert kind_of(kind(module.parameters(), **settings)) == name
