"""Settings of a training loop: schedules, groups, types, clipping, frozen weights."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.optim.families import Refinements
from pilotage.optim.reading import read_optimizer
from pilotage.runtime.executor import Executor

pytestmark = pytest.mark.slow


class Regression(nn.Module):
    def __init__(self, autocast: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.second = nn.Linear(8, 2)
        self.autocast = autocast

    def forward(self, x, target):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            output = self.second(torch.relu(self.first(x)))
        output = output.to(target.dtype)
        return output, functional.mse_loss(output, target)


def batches(count, size=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(size, 6, generator=generator).to(dtype), torch.randn(size, 2, generator=generator).to(dtype))
        for _ in range(count)
    ]


def sgd(module, lr=0.1, **settings):
    return torch.optim.SGD(module.parameters(), lr=lr, momentum=0.9, **settings)


SCHEDULES = {
    "steps": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, gamma=0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 6),
    "cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=9, cycle_momentum=False),
}


# torch cannot know that the program has updated the weights.
@pytest.mark.filterwarnings(r"ignore:Detected call of `lr_scheduler.step\(\)` before")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("make", [sgd, lambda m: torch.optim.Adam(m.parameters(), lr=0.01)], ids=["sgd", "adam"])
def test_a_learning_rate_schedule_is_followed_without_compiling_again(
    eager, twins, assert_equal, assert_same_state, schedule, make
):
    mine, theirs = twins(Regression)
    optimizer, other = make(mine), make(theirs)
    step, reference = pilotage.training(mine, optimizer), eager(theirs, other)
    rates, other_rates = SCHEDULES[schedule](optimizer), SCHEDULES[schedule](other)
    for batch in batches(8):
        step.set_optimizer(optimizer)
        assert_equal(step(*batch), reference(*batch))
        rates.step()
        other_rates.step()
    assert_same_state(mine, theirs)
    assert step.record.compilations == 1


@pytest.mark.parametrize(
    ("name", "value"), [("lr", 0.003), ("momentum", 0.5), ("weight_decay", 0.0), ("dampening", 0.4)]
)
def test_a_value_that_is_not_compiled_in_changes_and_changes_back(
    eager, twins, assert_equal, assert_same_state, name, value
):
    mine, theirs = twins(Regression)
    optimizer, other = (sgd(module, weight_decay=0.02, dampening=0.1) for module in (mine, theirs))
    step, reference = pilotage.training(mine, optimizer), eager(theirs, other)
    first = optimizer.param_groups[0][name]
    for present, batch in zip([first, value, value, first], batches(4), strict=True):
        optimizer.param_groups[0][name] = other.param_groups[0][name] = present
        step.set_optimizer(optimizer)
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)
    assert step.record.compilations == 1


def test_momentum_can_be_switched_off(eager, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Regression)
    optimizer, other = sgd(mine, dampening=0.1), sgd(theirs, dampening=0.1)
    step, reference = pilotage.training(mine, optimizer), eager(theirs, other)
    for momentum, batch in zip([0.9, 0.9, 0.0, 0.0], batches(4), strict=True):
        optimizer.param_groups[0]["momentum"] = other.param_groups[0]["momentum"] = momentum
        step.set_optimizer(optimizer)
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)


@pytest.mark.parametrize("name", ["weight_decay", "eps"])
def test_a_value_that_is_compiled_in_cannot_change(name):
    module = Regression()
    optimizer = torch.optim.Adam(module.parameters())
    step = pilotage.training(module, optimizer)
    step(*batches(1)[0])
    optimizer.param_groups[0][name] = 0.125
    with pytest.raises(pilotage.PilotageError, match=rf"{name} from .* to 0.125.*destroy\(\)"):
        step.set_optimizer(optimizer)


def test_anything_may_change_before_compilation(eager, twins, assert_equal):
    mine, theirs = twins(Regression)
    step = pilotage.training(mine, sgd(mine))
    step.set_optimizer(torch.optim.AdamW(mine.parameters(), lr=0.02))
    reference = eager(theirs, torch.optim.AdamW(theirs.parameters(), lr=0.02))
    for batch in batches(3):
        assert_equal(step(*batch), reference(*batch))


def test_after_destroy_another_optimizer_may_be_used(eager, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Regression)
    step, reference = pilotage.training(mine, sgd(mine)), eager(theirs, sgd(theirs))
    step(*batches(1)[0])
    reference(*batches(1)[0])
    step.destroy()
    step.set_optimizer(torch.optim.RMSprop(mine.parameters(), lr=0.01))
    reference = eager(theirs, torch.optim.RMSprop(theirs.parameters(), lr=0.01))
    for batch in batches(3):
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)


def test_parameter_groups_have_their_own_values(eager, twins, assert_equal, assert_same_state):
    def make(module):
        groups = [
            {"params": module.first.parameters(), "lr": 0.2, "weight_decay": 0.1},
            {"params": [module.second.weight], "lr": 0.01, "momentum": 0.5},
        ]
        return torch.optim.SGD(groups, lr=0.1)

    mine, theirs = twins(Regression)
    step, reference = pilotage.training(mine, make(mine)), eager(theirs, make(theirs))
    for batch in batches(4):
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)


def test_frozen_parameters_do_not_change(eager, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Regression)
    for module in (mine, theirs):
        module.first.weight.requires_grad_(False)
    step, reference = pilotage.training(mine, sgd(mine)), eager(theirs, sgd(theirs))
    before = mine.first.weight.clone()
    for batch in batches(3):
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)
    assert_equal(mine.first.weight.detach(), before)


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation": 2}], ids=["whole", "pooled"])
def test_a_float64_model_trains_bitwise_like_eager(options, eager, twins, assert_equal, assert_same_state):
    mine, theirs = twins(lambda: Regression().double())
    step, reference = pilotage.training(mine, sgd(mine), **options), eager(theirs, sgd(theirs), **options)
    for batch in batches(3, dtype=torch.float64):
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)
    assert mine.first.weight.dtype == torch.float64


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 2e-2), (torch.float16, 2e-3)])
def test_a_half_precision_model_trains_within_rounding(eager, twins, assert_equal, assert_same_state, dtype, tolerance):
    mine, theirs = twins(lambda: Regression().to(dtype))
    step, reference = pilotage.training(mine, sgd(mine)), eager(theirs, sgd(theirs))
    for batch in batches(3, dtype=dtype):
        assert_equal(step(*batch), reference(*batch), tolerance)
    assert_same_state(mine, theirs, tolerance)
    assert mine.first.weight.dtype == dtype


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_autocast_in_forward_is_part_of_the_program(eager, twins, assert_equal, assert_same_state, tier):
    mine, theirs = twins(lambda: Regression(autocast=True))
    step, reference = pilotage.training(mine, sgd(mine), tier=tier), eager(theirs, sgd(theirs))
    for batch in batches(3):
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_autocast_around_all_calls_casts_forward_and_nothing_else(twins, assert_equal, assert_same_state, tier):
    mine, theirs = twins(Regression)
    step, optimizer = pilotage.training(mine, sgd(mine), tier=tier), sgd(theirs)
    for batch in batches(3):
        with torch.autocast("cpu", torch.bfloat16):
            outputs = step(*batch)
            expected = theirs(*batch)
        optimizer.zero_grad()
        expected[1].backward()
        optimizer.step()
        assert_equal(outputs, tuple(tensor.detach() for tensor in expected))
    assert_same_state(mine, theirs)
    plain = Regression()
    plain.load_state_dict(mine.state_dict())
    assert not torch.equal(plain(*batch)[0], outputs[0])


def test_parameters_with_gaps_in_memory_are_pooled_densely(eager, twins, assert_equal, assert_same_state):
    class Gaps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 4)[:, ::2])
            self.scale = nn.Parameter(torch.randn(2, 2, 2, 2).to(memory_format=torch.channels_last))
            self.bias = nn.Parameter(torch.randn(2))

        def forward(self, x, target):
            output = (x @ self.weight + self.bias) * self.scale.sum(dim=(0, 1, 2))
            return output, functional.mse_loss(output, target)

    mine, theirs = twins(Gaps)
    step = pilotage.training(mine, sgd(mine, lr=0.01), gradient_accumulation=2)
    reference = eager(theirs, sgd(theirs, lr=0.01), gradient_accumulation=2)
    for batch in batches(3):
        assert_equal(step(*batch), reference(*batch))
    assert_same_state(mine, theirs)


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 2, dtype=torch.complex64))

    def forward(self, x, target):
        output = (x.to(torch.complex64) @ self.weight).abs()
        return output, functional.mse_loss(output, target)


def test_complex_parameters_train_if_nothing_is_pooled(eager, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Complex)
    step, reference = pilotage.training(mine, sgd(mine)), eager(theirs, sgd(theirs))
    for batch in batches(3):
        assert_equal(step(*batch), reference(*batch), 1e-6)
    assert_same_state(mine, theirs, 1e-6)


@pytest.mark.parametrize("option", ["gradient_accumulation", "replicas"])
def test_complex_parameters_are_refused_if_gradients_are_pooled(option):
    module = Complex()
    with pytest.raises(pilotage.PilotageError, match="parameter 'weight' is complex"):
        pilotage.training(module, sgd(module), **{option: 2})(*batches(1)[0])


def plan_with(module, **refinements):
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    return read_optimizer(sgd(module), names, refinements=Refinements(**refinements))


@pytest.mark.parametrize("constant", [True, False], ids=["compiled_in", "variable"])
def test_gradients_are_clipped_together_as_torch_clips_them(twins, assert_equal, assert_same_state, constant):
    mine, theirs = twins(Regression)
    constants = frozenset({"loss_scaling", "max_gradient_norm"} if constant else {"loss_scaling"})
    executor = Executor(mine, plan=plan_with(mine, max_gradient_norm=0.25, plan_constants=constants))
    optimizer = sgd(theirs)
    for batch in batches(4):
        executor(*batch)
        optimizer.zero_grad()
        theirs(*batch)[1].backward()
        assert nn.utils.clip_grad_norm_(theirs.parameters(), 0.25) > 0.25
        optimizer.step()
    assert_same_state(mine, theirs, 1e-7)


@pytest.mark.parametrize("accumulation", [1, 2])
def test_the_scale_of_the_loss_is_undone_before_the_update(twins, assert_equal, assert_same_state, accumulation):
    mine, theirs = twins(Regression)
    options = pilotage.door.execution(gradient_accumulation=accumulation)
    plan = plan_with(mine, loss_scaling=1024.0, plan_constants=frozenset({"max_gradient_norm"}))
    scaled = Executor(mine, plan=plan, execution=options)
    plain = pilotage.training(theirs, sgd(theirs), gradient_accumulation=accumulation)
    for batch in batches(2):
        assert_equal(scaled(*batch), plain(*batch))
        scaled.set_plan(dataclasses.replace(plan, loss_scaling=4096.0))
    assert_same_state(mine, theirs)
    assert scaled.record.compilations == 1
