"""The state that an optimizer starts with, found by running its step() on small tensors.

Most optimizers create the state of a parameter in its first step. A program has one form for all steps, so it needs the
state *before* the first one: what step() assigns to each entry first. Whether that is right is tried: two steps from
there have to give the same as two steps from an empty state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.optim.own_step.stepper import State, Stepper

_LONGEST_SIDE = 3
"""Of the tensors that the first state is tried with."""


class _FirstValues(dict[str, Any]):
    """A state that remembers what was assigned to each entry first."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[str, Any] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self.first:
            self.first[name] = _copied(value)
        super().__setitem__(name, value)

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value


@dataclass(frozen=True, slots=True)
class FirstState:
    """What an optimizer keeps for a parameter before its first step."""

    entries: State
    is_constructed: bool
    """Whether the optimizer was constructed with it; otherwise step() creates it."""


def first_state(stepper: Stepper, parameter: Tensor, values: Mapping[str, float], given: State | None) -> FirstState:
    """The state before the first step for a parameter of this form; ``given`` is what the optimizer has at present."""
    try:
        found, is_constructed = _assigned_first(stepper, parameter, values), False
    except KeyError:
        if not given:
            raise
        found, is_constructed = {name: _copied(value) for name, value in given.items()}, True
    found = {name: value for name, value in found.items() if value is not None}
    for name, value in found.items():
        if not isinstance(value, Tensor | int | float) or isinstance(value, bool):
            raise OptionError(
                f"{stepper.kind} cannot become part of a program: it keeps a {type(value).__name__} as {name!r} in its "
                "state, and a program keeps tensors and numbers."
            )
    if is_constructed:
        return FirstState(found, is_constructed=True)
    for candidate in (found, {name: _zeros(value) for name, value in found.items()}):
        is_even = all(_fills_evenly(value) for value in candidate.values())
        if is_even and _is_right(stepper, parameter, candidate, values):
            return FirstState(candidate, is_constructed=False)
    raise OptionError(
        f"{stepper.kind} cannot become part of a program: its first step() differs from later ones, or its state "
        "starts from the weights themselves. Use an optimizer of torch.optim, or start the state from constants."
    )


def _assigned_first(stepper: Stepper, parameter: Tensor, values: Mapping[str, float]) -> State:
    recorded, gradient = _FirstValues(), torch.zeros_like(parameter)
    stepper.run([torch.zeros_like(parameter)], [gradient], [recorded], values, captures=False)
    return recorded.first


def _is_right(stepper: Stepper, like: Tensor, candidate: State, values: Mapping[str, float]) -> bool:
    """Whether steps from a state equal those from an empty one, on small random tensors."""
    shape = [min(size, _LONGEST_SIDE) for size in like.shape]
    generator = torch.Generator().manual_seed(0)

    def drawn() -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(like.dtype)

    start, gradients = drawn(), [drawn() for _ in range(2)]
    small = {name: _like_first(value, like, start) for name, value in candidate.items()}
    if any(value is None for value in small.values()):
        # A form that depends on the shape: only the optimizer itself can make a smaller one.
        recorded = _assigned_first(stepper, start, values)
        small = {name: value if value is not None else _copied(recorded[name]) for name, value in small.items()}
    ends = []
    for state in ({}, small):
        parameter = start.clone()
        for gradient in gradients:
            stepper.run([parameter], [gradient.clone()], [state], values, captures=False)
        ends.append((parameter, {name: value for name, value in state.items() if value is not None}))
    (expected, kept), (found, other) = ends
    return _close(expected, found) and kept.keys() == other.keys() and all(_close(kept[n], other[n]) for n in kept)


def _like_first(value: Any, like: Tensor, small: Tensor) -> Any:
    if not isinstance(value, Tensor) or value.dim() == 0:
        return _copied(value)
    if value.shape == like.shape:
        return torch.full_like(small, float(value.reshape(-1)[0]), dtype=value.dtype)
    return None


def _close(expected: Any, found: Any) -> bool:
    if not isinstance(expected, Tensor) or not isinstance(found, Tensor):
        return bool(expected == found)
    return torch.allclose(expected, found, rtol=1e-5, atol=1e-7, equal_nan=True)


def _fills_evenly(value: Any) -> bool:
    return not isinstance(value, Tensor) or value.numel() == 0 or bool((value == value.reshape(-1)[0]).all())


def _zeros(value: Any) -> Any:
    return torch.zeros_like(value) if isinstance(value, Tensor) and value.dim() else value


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value
