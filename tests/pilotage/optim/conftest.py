"""Runs a torch optimizer and the rule that was read from it side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.optim.families import Refinements
from pilotage.optim.reading import read_optimizer
from pilotage.optim.rule import Group
from pilotage.optim.workspace import open_workspace

SHAPES = ((3, 5), (7,), (), (1,), (2, 3, 4, 5), (33, 65))
STEPS = 20


def draw(shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, dtype=dtype if dtype.is_complex else None, generator=generator).to(dtype)


@dataclass
class Race:
    """The same gradients and learning rates for a torch optimizer and for its rule."""

    optimizer: torch.optim.Optimizer
    parameters: list[Tensor]
    slots: dict[str, list[Tensor]]
    group: Group
    apply: Callable[[Sequence[Tensor], Tensor, Mapping[str, float]], None]

    def run(self, learning_rates: Sequence[float], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        step = torch.zeros((), dtype=torch.float64)
        for learning_rate in learning_rates:
            gradients = [draw(p.shape, p.dtype, generator) for p in self.parameters]
            self.optimizer.param_groups[0]["lr"] = learning_rate
            for parameter, gradient in zip(self.theirs, gradients, strict=True):
                parameter.grad = gradient.clone()
            self.optimizer.step()
            self.apply(gradients, step, {**self.group.values, "lr": learning_rate})
            step += 1

    @property
    def theirs(self) -> list[Tensor]:
        return self.optimizer.param_groups[0]["params"]

    def assert_equal(self) -> None:
        for mine, theirs in zip(self.parameters, self.theirs, strict=True):
            assert torch.allclose(mine, theirs, rtol=0, atol=0, equal_nan=True)
        self.assert_slots_equal()

    def assert_close(self, tolerance: float) -> None:
        for mine, theirs in zip(self.parameters, self.theirs, strict=True):
            torch.testing.assert_close(mine, theirs.detach(), rtol=tolerance, atol=tolerance)

    def assert_slots_equal(self) -> None:
        for slot, tensors in self.slots.items():
            for mine, parameter in zip(tensors, self.theirs, strict=True):
                theirs = self.optimizer.state[parameter].get(slot)
                assert theirs is None or torch.allclose(mine, theirs, rtol=0, atol=0, equal_nan=True)


def start_race(
    make_optimizer: Callable[[list[Tensor]], torch.optim.Optimizer],
    *,
    variable: frozenset[str],
    captured: bool,
    refinements: Refinements | None = None,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> Race:
    torch.manual_seed(seed)
    parameters = [draw(shape, dtype, torch.default_generator) for shape in SHAPES]
    parameters[4] = parameters[4].to(memory_format=torch.channels_last)
    theirs = [torch.nn.Parameter(parameter.clone()) for parameter in parameters]
    optimizer = make_optimizer(theirs)
    names = {id(parameter): str(position) for position, parameter in enumerate(theirs)}
    values = read_optimizer(optimizer, names).groups[0].values
    refinements = refinements or Refinements(constants=frozenset(values) - variable)
    (group,) = read_optimizer(optimizer, names, refinements=refinements).groups
    slots = {slot: [group.rule.initial(slot, parameter) for parameter in parameters] for slot in group.rule.slots}
    return Race(optimizer, parameters, slots, group, applier(group, parameters, slots, captured=captured))


def applier(
    group: Group, parameters: list[Tensor], slots: dict[str, list[Tensor]], *, captured: bool
) -> Callable[[Sequence[Tensor], Tensor, Mapping[str, float]], None]:
    """A function of gradients, step and values that updates parameters and slots by the group's rule."""
    constants = {name: group.values[name] for name in sorted(group.constants)}
    variable = sorted(group.values.keys() - group.constants)

    def update(*flat: Tensor) -> None:
        rest = iter(flat)
        count = len(parameters)
        mine = [next(rest) for _ in range(count)]
        gradients = [next(rest) for _ in range(count)]
        kept = {slot: [next(rest) for _ in range(count)] for slot in slots}
        step = next(rest)
        with torch.no_grad():
            work = open_workspace(mine, gradients, kept, maximize=group.rule.maximize)
            group.rule.apply(work, step, constants | dict(zip(variable, rest, strict=True)))

    program = None

    def call(gradients: Sequence[Tensor], step: Tensor, values: Mapping[str, float]) -> None:
        nonlocal program
        numbers = [torch.tensor(values[name], dtype=torch.float64) for name in variable]
        flat = [*parameters, *gradients, *(t for tensors in slots.values() for t in tensors), step, *numbers]
        if program is None:
            program = capture(update, flat) if captured else update
        program(*flat)

    return call


def capture(function: Callable[..., None], arguments: Sequence[Tensor]) -> Callable[..., None]:
    mode = FakeTensorMode(allow_fallback_kernels=True, allow_non_fake_inputs=True, shape_env=None)
    fakes = [mode.from_tensor(argument) for argument in arguments]
    with mode:
        return make_fx(function, tracing_mode="real", _allow_non_fake_inputs=True)(*fakes)


@pytest.fixture(scope="session")
def race() -> Callable[..., Race]:
    """Starts a race between a torch optimizer and its rule."""
    return start_race


@pytest.fixture(scope="session")
def captured_graph() -> Callable[..., Callable[..., None]]:
    """Captures a function on fake tensors, as the engine does."""
    return capture
