"""Optimizers of compiled models: their values, their state, and others in their place."""

from __future__ import annotations

import copy
import json
import logging
import math
import subprocess
import sys
import textwrap

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from poptorch import optim

pytestmark = pytest.mark.slow


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)

    def forward(self, x, y):
        return functional.mse_loss(self.second(self.first(x).tanh()), y)


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.linspace(1, -1, 8).reshape(4, 2)


def quiet():
    return poptorch.Options().showCompilationProgressBar(False)


def training(module, optimizer, options=None):
    return poptorch.trainingModel(module, options or quiet(), optimizer=optimizer)


def step_eagerly(module, optimizer, clip=math.inf):
    optimizer.zero_grad()
    module(X, Y).backward()
    if clip < math.inf:
        nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip)
    optimizer.step()


def assert_same(module, other, tolerance=1e-6):
    torch.testing.assert_close(dict(module.state_dict()), dict(other.state_dict()), rtol=0, atol=tolerance)


def changed_by(model, module):
    before = copy.deepcopy(module)
    model(X, Y)
    return any(not torch.equal(a, b) for a, b in zip(module.parameters(), before.parameters(), strict=True))


# The same arithmetic as torch's

SETTINGS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "dampening": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1, "eps": 1e-5}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True, "alpha": 0.9, "weight_decay": 0.1}),
]


@pytest.mark.parametrize("package", [torch.optim, optim], ids=["torch", "poptorch"])
@pytest.mark.parametrize(("kind", "settings"), SETTINGS)
def test_training_equals_torchs_own_loop(package, kind, settings):
    module, twin = Network(), Network()
    model = training(module, getattr(package, kind)(module.parameters(), **settings))
    reference = getattr(torch.optim, kind)(twin.parameters(), **settings)
    for _ in range(4):
        model(X, Y)
        step_eagerly(twin, reference)
    assert_same(module, twin)


@pytest.mark.parametrize("loss_scaling", [1.0, 128.0])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"])
def test_loss_scaling_is_undone_before_the_update(kind, loss_scaling):
    module, twin = Network(), Network()
    model = training(module, getattr(optim, kind)(module.parameters(), lr=0.01, loss_scaling=loss_scaling))
    plain = training(twin, getattr(optim, kind)(twin.parameters(), lr=0.01))
    for _ in range(3):
        assert math.isclose(model(X, Y).item(), plain(X, Y).item(), abs_tol=1e-6)
    assert_same(module, twin)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
@pytest.mark.parametrize("norm", [0.01, 0.3, math.inf])
def test_gradients_are_clipped_by_their_common_norm(kind, norm):
    module, twin = Network(), Network()
    model = training(module, getattr(optim, kind)(module.parameters(), lr=0.1, max_grad_norm=norm))
    reference = getattr(torch.optim, kind)(twin.parameters(), lr=0.1)
    for _ in range(3):
        model(X, Y)
        step_eagerly(twin, reference, clip=norm)
    assert_same(module, twin)


@pytest.mark.parametrize("accumulation", [1, 4])
def test_clipping_looks_at_the_pooled_gradients(accumulation):
    options = quiet()
    options.Training.gradientAccumulation(accumulation)
    module, twin = Network(), Network()
    model = training(module, optim.SGD(module.parameters(), lr=0.5, max_grad_norm=0.1), options)
    model(X, Y)
    # The loss is a mean over equal parts, so that the pooled gradient is that of the whole batch.
    step_eagerly(twin, torch.optim.SGD(twin.parameters(), lr=0.5), clip=0.1)
    assert_same(module, twin)


@pytest.mark.parametrize("bias_correction", [True, False])
def test_lamb_steps_by_the_trust_ratio(bias_correction):
    module, twin = Network(), Network()
    settings = {"lr": 0.1, "weight_decay": 0.1, "bias_correction": bias_correction, "max_weight_norm": 1.5}
    model = training(module, optim.LAMB(module.parameters(), **settings))
    moments = {name: [torch.zeros_like(p), torch.zeros_like(p)] for name, p in twin.named_parameters()}
    for step in range(1, 4):
        model(X, Y)
        twin.zero_grad()
        twin(X, Y).backward()
        with torch.no_grad():
            for name, parameter in twin.named_parameters():
                first, second = moments[name]
                first.mul_(0.9).add_(parameter.grad, alpha=0.1)
                second.mul_(0.999).addcmul_(parameter.grad, parameter.grad, value=0.001)
                corrections = (1 - 0.9**step, 1 - 0.999**step) if bias_correction else (1, 1)
                update = (first / corrections[0]) / ((second / corrections[1]).sqrt() + 1e-8) + 0.1 * parameter
                weight_norm, update_norm = parameter.norm().clamp(max=1.5), update.norm()
                ratio = weight_norm / update_norm if weight_norm > 0 and update_norm > 0 else 1.0
                parameter -= 0.1 * ratio * update
    assert_same(module, twin, 1e-5)


def test_rmsprop_after_tensorflow_starts_from_one_and_puts_epsilon_under_the_root():
    module, twin = Network(), Network()
    settings = {"lr": 0.05, "alpha": 0.9, "momentum": 0.8, "eps": 1e-3}
    model = training(module, optim.RMSprop(module.parameters(), **settings, use_tf_variant=True))
    state = {name: [torch.ones_like(p), torch.zeros_like(p)] for name, p in twin.named_parameters()}
    for _ in range(3):
        model(X, Y)
        twin.zero_grad()
        twin(X, Y).backward()
        with torch.no_grad():
            for name, parameter in twin.named_parameters():
                square, buffer = state[name]
                square.mul_(0.9).addcmul_(parameter.grad, parameter.grad, value=0.1)
                buffer.mul_(0.8).add_(0.05 * parameter.grad / (square + 1e-3).sqrt())
                parameter -= buffer
    assert_same(module, twin, 1e-5)


# Values are read when the optimizer is set


def test_a_new_rate_counts_only_once_the_optimizer_is_set_again():
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(X, Y)
    optimizer.param_groups[0]["lr"] = 0.0
    assert changed_by(model, module)
    model.setOptimizer(optimizer)
    assert not changed_by(model, module)


def test_values_changed_between_wrapping_and_compiling_do_not_count_either():
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    optimizer.param_groups[0]["lr"] = 0.0
    assert changed_by(model, module)


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize(
    "schedule",
    [
        lambda o: torch.optim.lr_scheduler.StepLR(o, step_size=2, gamma=0.5),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=6),
    ],
    ids=["StepLR", "LambdaLR", "OneCycleLR"],
)
def test_a_schedule_is_followed_without_compiling_again(schedule, warnings_of_poptorch):
    module, twin = Network(), Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    reference = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9)
    model = training(module, optimizer)
    schedules = schedule(optimizer), schedule(reference)
    model.setOptimizer(optimizer)
    for _ in range(5):
        model(X, Y)
        step_eagerly(twin, reference)
        for each in schedules:
            each.step()
        model.setOptimizer(optimizer)
    assert_same(module, twin)
    assert model.engine.record.compilations == 1
    assert warnings_of_poptorch() == []


def test_each_group_of_parameters_has_values_of_its_own():
    def groups(module):
        return [
            {"params": module.first.parameters(), "lr": 0.5, "weight_decay": 0.1},
            {"params": [module.second.weight]},
            {"params": [module.second.bias], "lr": 0.0},
        ]

    module, twin = Network(), Network()
    optimizer = optim.SGD(groups(module), lr=0.1)
    reference = torch.optim.SGD(groups(twin), lr=0.1)
    model = training(module, optimizer)
    for rates in ((0.5, 0.1, 0.0), (0.0, 0.3, 0.2)):
        for group, other, rate in zip(optimizer.param_groups, reference.param_groups, rates, strict=True):
            group["lr"] = other["lr"] = rate
        model.setOptimizer(optimizer)
        for _ in range(2):
            model(X, Y)
            step_eagerly(twin, reference)
        assert_same(module, twin)


def test_parameters_that_no_group_holds_are_left_alone():
    module = Network()
    before = copy.deepcopy(module)
    training(module, optim.SGD(module.first.parameters(), lr=0.1))(X, Y)
    assert torch.equal(module.second.weight, before.second.weight)
    assert not torch.equal(module.first.weight, before.first.weight)


def test_parameters_without_gradients_are_left_alone():
    module = Network()
    module.first.requires_grad_(False)
    before = copy.deepcopy(module)
    training(module, optim.SGD(module.parameters(), lr=0.1, weight_decay=0.1))(X, Y)
    assert torch.equal(module.first.weight, before.first.weight)
    assert not torch.equal(module.second.weight, before.second.weight)


# What may change, and what may not


def test_what_was_left_out_is_constant_and_what_was_given_may_change():
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1, weight_decay=0.0)
    model = training(module, optimizer)
    model(X, Y)
    optimizer.param_groups[0]["weight_decay"] = 0.5
    model.setOptimizer(optimizer)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(poptorch.Error, match=r"momentum from 0\.0 to 0\.9"):
        model.setOptimizer(optimizer)
    model(X, Y)


def test_a_constant_can_be_marked_as_variable_and_back():
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.5)
    optimizer.variable_attrs.markAsConstant("momentum")
    optimizer.variable_attrs.markAsVariable("dampening")
    model = training(module, optimizer)
    model(X, Y)
    optimizer.param_groups[0]["dampening"] = 0.5
    model.setOptimizer(optimizer)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(poptorch.Error, match="momentum"):
        model.setOptimizer(optimizer)
    with pytest.raises(AssertionError, match="Unknown attribute"):
        optimizer.variable_attrs.markAsVariable("wings")


@pytest.mark.parametrize(
    ("kind", "given", "change", "allowed"),
    [
        ("SGD", {"lr": 0.1}, {"lr": 0.2}, True),
        ("SGD", {"lr": 0.1, "momentum": 0.5}, {"momentum": 0.9}, True),
        ("SGD", {"lr": 0.1}, {"momentum": 0.9}, False),
        ("SGD", {"lr": 0.1, "weight_decay": 0.1}, {"weight_decay": 0.2}, True),
        ("SGD", {"lr": 0.1}, {"weight_decay": 0.2}, False),
        ("SGD", {"lr": 0.1, "momentum": 0.5}, {"nesterov": True}, False),
        ("Adam", {"lr": 0.1, "betas": (0.5, 0.6)}, {"betas": (0.7, 0.8)}, False),
        ("Adam", {"lr": 0.1}, {"eps": 1e-3}, False),
        ("Adam", {"lr": 0.1, "eps": 1e-4}, {"eps": 1e-3}, True),
        ("AdamW", {"lr": 0.1}, {"weight_decay": 0.5}, False),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.2}, {"weight_decay": 0.5}, True),
        ("RMSprop", {"lr": 0.1, "alpha": 0.5}, {"alpha": 0.6}, False),
    ],
)
def test_of_torchs_optimizers_what_stands_at_its_default_is_constant(kind, given, change, allowed):
    module = Network()
    optimizer = getattr(torch.optim, kind)(module.parameters(), **given)
    model = training(module, optimizer)
    model(X, Y)
    optimizer.param_groups[0].update(change)
    if allowed:
        model.setOptimizer(optimizer)
        model(X, Y)
    else:
        with pytest.raises(poptorch.Error, match="compiled into the program"):
            model.setOptimizer(optimizer)


def test_another_optimizer_of_the_same_kind_takes_over():
    module = Network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model(X, Y)
    model.setOptimizer(optim.SGD(module.parameters(), lr=0.0))
    assert not changed_by(model, module)
    assert model.engine.record.compilations == 1


def test_before_compiling_any_optimizer_takes_over():
    module, twin = Network(), Network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model.setOptimizer(optim.Adam(module.parameters(), lr=0.05))
    model(X, Y)
    step_eagerly(twin, torch.optim.Adam(twin.parameters(), lr=0.05))
    assert_same(module, twin)


@pytest.mark.parametrize(
    "other",
    [
        lambda m: optim.Adam(m.parameters(), lr=0.1),
        lambda m: optim.SGD(m.first.parameters(), lr=0.1),
        lambda m: optim.SGD([{"params": m.first.parameters()}, {"params": m.second.parameters()}], lr=0.1),
    ],
    ids=["kind", "parameters", "groups"],
)
def test_after_compiling_another_kind_of_optimizer_is_refused(other):
    module = Network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model(X, Y)
    with pytest.raises(poptorch.Error, match="compiled into the program"):
        model.setOptimizer(other(module))
    assert changed_by(model, module)
    model.destroy()
    model.setOptimizer(other(module))
    assert changed_by(model, module)


def test_optimizers_of_other_kinds_are_refused():
    module = Network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    for other in (torch.optim.Adagrad(module.parameters()), torch.optim.Adadelta(module.parameters())):
        with pytest.raises(AssertionError, match="Unsupported optimizer type"):
            model.setOptimizer(other)
        with pytest.raises(AssertionError, match="Unsupported optimizer type"):
            training(Network(), other)


def test_inference_has_no_optimizer():
    module = Network()
    with pytest.raises(poptorch.Error, match="inference"):
        poptorch.inferenceModel(module).setOptimizer(optim.SGD(module.parameters(), lr=0.1))


def test_a_narrow_accumulation_type_is_chosen_before_compiling():
    module = Network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model(X, Y)
    with pytest.raises(ValueError, match="already compiled"):
        model.setOptimizer(optim.SGD(module.parameters(), lr=0.1, accum_type=torch.float16))


# Warnings


class OwnStep(optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("is not run")


def test_an_optimizer_of_ones_own_is_warned_of_once(warnings_of_poptorch):
    module = Network()
    optimizer = OwnStep(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    for _ in range(3):
        model.setOptimizer(optimizer)
        model(X, Y)
    (said,) = warnings_of_poptorch()
    assert "Poptorch does not run Python optimizer code directly" in said


def test_unexpected_attributes_are_warned_of_once_each(warnings_of_poptorch):
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    optimizer.param_groups[0]["loss_scaling"] = 2.0
    optimizer.wings = 2
    optimizer.defaults["feathers"] = 3
    for _ in range(3):
        model.setOptimizer(optimizer)
    assert sorted(warnings_of_poptorch()) == [
        "Ignoring unexpected default group variable in SGD2 optimizer: ['feathers']",
        "Ignoring unexpected group 0 attribute in SGD2 optimizer: ['loss_scaling']",
        "Ignoring unexpected optimizer attribute in SGD2 optimizer: ['wings']",
    ]


def test_relaxed_checks_speak_only_to_those_who_debug(caplog):
    caplog.set_level(logging.DEBUG, "poptorch::python")
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    model = training(module, optimizer, quiet().relaxOptimizerAttributesChecks())
    optimizer.wings = 2
    model.setOptimizer(optimizer)
    (record,) = [each for each in caplog.records if "wings" in each.getMessage()]
    assert record.levelno == logging.DEBUG


# State

KINDS = {
    "SGD": ({"lr": 0.1, "momentum": 0.9}, {"Accl1"}, {"scaledLearningRate0", "weightDecayScaleFactor0", "momentum"}),
    "Adam": ({"lr": 0.1}, {"Accl1", "Accl2", "Step"}, {"learningRate", "weightDecay", "beta1", "beta2", "eps"}),
    "AdamW": ({"lr": 0.1}, {"Accl1", "Accl2", "Step"}, {"learningRate", "weightDecay", "beta1", "beta2", "eps"}),
    "RMSprop": ({"lr": 0.1, "momentum": 0.9}, {"Accl2", "Accl3"}, {"learningRate", "weightDecay", "alpha", "eps"}),
    "LAMB": ({"lr": 0.1}, {"Accl1", "Accl2", "Step"}, {"learningRate", "maxWeightNorm", "beta1"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_is_there_once_the_model_is_compiled(kind):
    settings, slots, values = KINDS[kind]
    module = Network()
    optimizer = getattr(optim, kind)(module.parameters(), **settings)
    model = training(module, optimizer)
    assert (optimizer.state_dict()["ipu_state"], optimizer.state_dict()["ipu_param"]) == (None, None)
    model.compile(X, Y)
    state = optimizer.state_dict()
    names = [name for name, _ in module.named_parameters()]
    assert state["ipu_state"].keys() == {f"{slot}___{name}" for slot in slots for name in names}
    assert state["ipu_param"].keys() >= {f"{value}___specific___{name}" for value in values for name in names}
    assert state["ipu_param"]["lossScaling_FLOAT"].item() == 1.0
    model(X, Y)
    moved = optimizer.state_dict()["ipu_state"]
    assert not torch.equal(
        moved["Accl2___first.weight" if "Accl2" in slots else "Accl1___first.weight"], torch.zeros(4, 3)
    )


def test_plain_descent_has_values_but_no_state():
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.1)
    training(module, optimizer)(X, Y)
    assert optimizer.state_dict()["ipu_state"] == {}
    assert optimizer.state_dict()["ipu_param"]


def test_the_values_of_descent_are_written_as_poptorch_does():
    module = Network()
    optimizer = optim.SGD(module.parameters(), lr=0.2, momentum=0.9, dampening=0.25, weight_decay=0.5, loss_scaling=4.0)
    training(module, optimizer).compile(X, Y)
    values = optimizer.state_dict()["ipu_param"]
    assert math.isclose(values["scaledLearningRate0___specific___first.bias"].item(), 0.2 * 0.75 / 4.0, rel_tol=1e-6)
    assert math.isclose(values["weightDecayScaleFactor0___specific___first.bias"].item(), 1 - 0.15 * 0.5, rel_tol=1e-6)
    assert values["lossScaling_FLOAT"].item() == 4.0


def test_the_state_equals_that_of_torchs_own_optimizer():
    module, twin = Network(), Network()
    optimizer, reference = optim.Adam(module.parameters(), lr=0.1), torch.optim.Adam(twin.parameters(), lr=0.1)
    model = training(module, optimizer)
    for _ in range(3):
        model(X, Y)
        step_eagerly(twin, reference)
    state = optimizer.state_dict()["ipu_state"]
    for name, parameter in twin.named_parameters():
        torch.testing.assert_close(state[f"Accl1___{name}"], reference.state[parameter]["exp_avg"], rtol=0, atol=1e-7)
        torch.testing.assert_close(
            state[f"Accl2___{name}"], reference.state[parameter]["exp_avg_sq"], rtol=0, atol=1e-7
        )
        assert state[f"Step___{name}"].item() == 3.0


def test_setting_new_values_shows_in_the_state():
    module = Network()
    optimizer = optim.Adam(module.parameters(), lr=0.5)
    model = training(module, optimizer)
    model(X, Y)
    assert optimizer.state_dict()["ipu_param"]["learningRate___specific___first.bias"].item() == 0.5
    optimizer.param_groups[0]["lr"] = 0.25
    model.setOptimizer(optimizer)
    assert optimizer.state_dict()["ipu_param"]["learningRate___specific___first.bias"].item() == 0.25


def test_the_device_is_read_only_when_it_knows_more():
    module = Network()
    optimizer = optim.Adam(module.parameters(), lr=0.5)
    model = training(module, optimizer)
    model(X, Y)
    assert optimizer.ipu_state_is_dirty
    first = optimizer.state_dict()["ipu_state"]
    assert not optimizer.ipu_state_is_dirty
    assert optimizer.state_dict()["ipu_state"] is first
    model(X, Y)
    assert optimizer.state_dict()["ipu_state"] is not first


@pytest.mark.parametrize("leave", ["destroy", "detachFromDevice"])
def test_the_state_outlives_the_program_and_the_attachment(leave):
    module, twin = Network(), Network()
    optimizer, reference = optim.Adam(module.parameters(), lr=0.1), torch.optim.Adam(twin.parameters(), lr=0.1)
    model = training(module, optimizer)
    for step in range(4):
        if step == 2:
            getattr(model, leave)()
            assert optimizer.state_dict()["ipu_state"]["Step___first.bias"].item() == 2.0
        model(X, Y)
        step_eagerly(twin, reference)
    assert_same(module, twin)


def test_an_optimizer_brings_its_state_to_a_new_wrapper():
    module, twin = Network(), Network()
    optimizer, reference = optim.Adam(module.parameters(), lr=0.1), torch.optim.Adam(twin.parameters(), lr=0.1)
    for _ in range(3):
        model = training(module, optimizer)
        model(X, Y)
        step_eagerly(twin, reference)
        model.destroy()
    assert_same(module, twin)
    assert optimizer.state_dict()["ipu_state"]["Step___first.bias"].item() == 3.0


def test_a_replaced_optimizer_keeps_what_it_knew_and_learns_no_more():
    module = Network()
    first, second = optim.Adam(module.parameters(), lr=0.1), optim.Adam(module.parameters(), lr=0.2)
    model = training(module, first)
    model(X, Y)
    model.setOptimizer(second)
    model(X, Y)
    assert first.state_dict()["ipu_state"]["Step___first.bias"].item() == 1.0
    assert second.state_dict()["ipu_state"]["Step___first.bias"].item() == 2.0


# Through files


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("when", ["before wrapping", "before compiling", "after compiling"])
def test_a_saved_state_goes_on_to_the_last_bit(kind, when, tmp_path):
    settings = KINDS[kind][0]
    module = Network()
    optimizer = getattr(optim, kind)(module.parameters(), **settings)
    model = training(module, optimizer)
    for _ in range(2):
        model(X, Y)
    optimizer.param_groups[0]["lr"] = 0.07
    model.setOptimizer(optimizer)
    model(X, Y)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "checkpoint")
    expected = [model(X, Y).item() for _ in range(3)]

    saved = torch.load(tmp_path / "checkpoint")
    module = Network()
    optimizer = getattr(optim, kind)(module.parameters(), **settings)
    if when == "before wrapping":
        optimizer.load_state_dict(saved["optimizer"])
    model = training(module, optimizer)
    if when == "after compiling":
        model(X, Y)
    model.load_state_dict(saved["model"])
    if when != "before wrapping":
        optimizer.load_state_dict(saved["optimizer"])
    assert [model(X, Y).item() for _ in range(3)] == expected


@pytest.mark.slow
def test_a_saved_state_goes_on_in_another_process(tmp_path):
    source = """
        import torch, poptorch
        from torch import nn

        class Network(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.layer = nn.Linear(3, 2)

            def forward(self, x, y):
                return nn.functional.mse_loss(self.layer(x), y)

        X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.zeros(4, 2)
        module = Network()
        optimizer = poptorch.optim.Adam(module.parameters(), lr=0.1)
        model = poptorch.trainingModel(module, optimizer=optimizer)
    """
    save = "torch.save([model.state_dict(), optimizer.state_dict()], PATH)"
    restore = "weights, state = torch.load(PATH); model.load_state_dict(weights); optimizer.load_state_dict(state)"
    run = "print([model(X, Y).item() for _ in range(3)])"

    def printed(*lines):
        program = "\n".join([textwrap.dedent(source), f"PATH = {str(tmp_path / 'checkpoint')!r}", *lines])
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    _, expected = printed(run, save, run)
    assert printed(restore, run) == [expected]


def test_a_rate_that_is_set_after_loading_counts_more_than_the_loaded_one(tmp_path):
    module = Network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(X, Y)
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    optimizer.param_groups[0]["lr"] = 0.0
    model.setOptimizer(optimizer)
    assert not changed_by(model, module)
    assert optimizer.state_dict()["ipu_state"]["Step___first.bias"].item() == 2.0


def test_a_rate_that_is_loaded_after_setting_counts():
    module = Network()
    optimizer = optim.Adam(module.parameters(), lr=0.0)
    model = training(module, optimizer)
    model(X, Y)
    still = copy.deepcopy(optimizer.state_dict())
    optimizer.param_groups[0]["lr"] = 0.1
    model.setOptimizer(optimizer)
    assert changed_by(model, module)
    optimizer.load_state_dict(still)
    assert not changed_by(model, module)


def test_an_incomplete_state_is_merged_at_the_next_run():
    module = Network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    model = training(module, optimizer)
    model(X, Y)
    state = optimizer.state_dict()
    kept = state["ipu_state"]["Accl1___second.bias"].clone()
    marked = torch.full_like(state["ipu_state"]["Accl1___first.bias"], 100.0)
    optimizer.load_state_dict({**state, "ipu_state": {"Accl1___first.bias": marked}})
    model(X, Y)
    after = optimizer.state_dict()["ipu_state"]
    assert after["Accl1___first.bias"].min() > 80.0
    assert after["Accl1___second.bias"].abs().max() < 10 * kept.abs().max() + 1


def test_states_that_are_none_are_refused():
    module = Network()
    optimizer = optim.Adam(module.parameters(), lr=0.1)
    training(module, optimizer)(X, Y)
    with pytest.raises(RuntimeError, match=r"Cannot load optimizer state dictionary because it is empty\."):
        optimizer.load_state_dict({})
    with pytest.raises(RuntimeError, match=r"Only IPU optimizer states can be loaded onto the IPU\."):
        optimizer.load_state_dict(torch.optim.Adam(module.parameters()).state_dict())
