from __future__ import annotations

import copy
import pickle

import pytest
import torch

from poptorch._optimizer_attributes import AttributeTracker, VariableAttributes


def test_attributes_are_constant_unless_named():
    attributes = VariableAttributes(["lr"], ["lr", "momentum"])
    assert not attributes.isConstant("lr")
    assert attributes.isConstant("momentum")
    assert attributes.variables == {"lr"}
    assert attributes.constants == {"momentum"}


def test_attributes_can_be_marked_constant_or_variable():
    attributes = VariableAttributes(["lr"], ["lr", "momentum"])
    attributes.markAsConstant("lr")
    attributes.markAsVariable("momentum")
    assert attributes.isConstant("lr")
    assert not attributes.isConstant("momentum")


def test_the_lists_can_be_assigned():
    attributes = VariableAttributes(["lr"], ["lr", "momentum"])
    attributes._variable_attributes = copy.deepcopy(attributes._allowed_attributes)
    assert attributes.variables == {"lr", "momentum"}
    attributes.markAsVariable("lr")
    attributes.markAsConstant("lr")
    assert attributes._variable_attributes == ["momentum"]


@pytest.mark.parametrize("method", ["isConstant", "markAsConstant", "markAsVariable"])
def test_unknown_attributes_are_refused(method):
    with pytest.raises(AssertionError, match="Unknown attribute momentun"):
        getattr(VariableAttributes(["lr"], ["lr"]), method)("momentun")


def test_an_unknown_attribute_cannot_be_variable_from_the_start():
    with pytest.raises(AssertionError, match="Unknown attribute"):
        VariableAttributes(["lr"], ["momentum"])


def test_markings_survive_pickling():
    attributes = pickle.loads(pickle.dumps(VariableAttributes(["lr"], ["lr", "eps"])))
    assert not attributes.isConstant("lr")
    assert attributes.isConstant("eps")


@pytest.fixture
def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)


@pytest.fixture
def said():
    return []


def test_attributes_of_the_first_optimizer_are_expected(optimizer, said):
    optimizer.wings = 2
    optimizer.param_groups[0]["wheels"] = 4
    AttributeTracker().report(optimizer, "SGD2", said.append)
    assert said == []


def test_later_attributes_are_reported_once(optimizer, said):
    tracker = AttributeTracker()
    tracker.report(optimizer, "SGD2", said.append)
    optimizer.param_groups[0]["loss_scaling"] = 2.0
    optimizer.defaults["wings"] = 2
    optimizer.wheels = 4
    for _ in range(2):
        tracker.report(optimizer, "SGD2", said.append)
    assert sorted(said) == [
        "Ignoring unexpected default group variable in SGD2 optimizer: ['wings']",
        "Ignoring unexpected group 0 attribute in SGD2 optimizer: ['loss_scaling']",
        "Ignoring unexpected optimizer attribute in SGD2 optimizer: ['wheels']",
    ]


@pytest.mark.parametrize(
    "schedule",
    [
        lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1),
        lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, 10, cycle_momentum=False),
        lambda optimizer: torch.optim.swa_utils.SWALR(optimizer, 0.1),
    ],
)
def test_attributes_of_learning_rate_schedulers_are_expected(optimizer, said, schedule):
    tracker = AttributeTracker()
    tracker.report(optimizer, "SGD2", said.append)
    schedule(optimizer)
    tracker.report(optimizer, "SGD2", said.append)
    assert said == []


def test_each_kind_of_optimizer_has_its_own_expected_attributes(optimizer, said):
    tracker = AttributeTracker()
    tracker.report(optimizer, "SGD2", said.append)
    tracker.report(torch.optim.Adam(optimizer.param_groups[0]["params"]), "ADAM", said.append)
    assert said == []


def test_attributes_that_appear_on_the_optimizer_itself_are_reported_once():
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    tracker, said = AttributeTracker(), []
    tracker.report(optimizer, "SGD2", said.append)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    tracker.report(optimizer, "SGD2", said.append)
    assert said == []
    optimizer.step, optimizer.initial_lr = 0, 0.2
    for _ in range(2):
        tracker.report(optimizer, "SGD2", said.append)
    assert said == ["Ignoring unexpected optimizer attribute in SGD2 optimizer: ['initial_lr', 'step']"]
