"""How far the results of a program are from those of eager PyTorch.

The distance of two tensors is the norm of their difference, divided by the norm of the expected one. For a weight it is
divided by the norm of its update: a wrong update of one percent is a large error, and a tiny part of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from pilotage.arrival.reference import Outcome, Start
from pilotage.program.layout import Slot

_TOLERANCE = {torch.float64: 1e-11, torch.float32: 3e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}
"""Distances that need no explanation, by the coarsest type of a program."""

_SQUARES = frozenset({"exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum"})
"""Optimizer state that contains squares of gradients. Their roots are compared: rounding errors belong to gradients."""

_DIFFERENT = float("inf")

_PIECE = 1 << 22
"""How many elements are converted at once."""

_CERTAIN = 4.0
"""Sums of independent errors are hardly ever more than this many times their usual size."""


@dataclass(kw_only=True)
class Quantity:
    """One result that is compared."""

    kind: str
    """Output, buffer, optimizer or weight."""

    name: str
    of: Callable[[Outcome], Tensor]
    """Finds it in an outcome."""

    found: Tensor
    expected: Tensor
    start: Tensor | None = None
    """The value before the update, for a weight."""

    has_squares: bool = False
    """Whether roots are compared."""

    def distance_of(self, other: Outcome) -> float:
        """The distance of another result from the expected one."""
        return self._distance(self.of(other))

    @cached_property
    def distance(self) -> float:
        """The distance of the program's result from the expected one."""
        return self._distance(self.found)

    def excess_of(self, other: Outcome) -> float:
        """How much larger another result is than the expected one, as a fraction; negative if it is smaller."""
        return self._compared(self.of(other), excess)

    @cached_property
    def excess(self) -> float:
        """How much larger the program's result is than the expected one."""
        return self._compared(self.found, excess)

    @property
    def most_excess(self) -> float:
        """No smaller than the size of the excess, and known without computing it."""
        return self.distance + self._stored

    @property
    def excess_by_storing(self) -> float:
        """The excess that a weight may get because it is rounded when it is stored."""
        return _CERTAIN * self._stored / math.sqrt(max(1, self.expected.numel()))

    @cached_property
    def _stored(self) -> float:
        """The errors of storing a weight in half precision, relative to its update; in other types they are tiny."""
        if self.start is None or not self.expected.is_floating_point() or self.expected.dtype.itemsize > 2:
            return 0.0
        update = _norm(self.expected.float() - self.start.to(self.expected.device, torch.float32))
        errors = torch.finfo(self.expected.dtype).eps * _norm(self.start)
        return errors / update if update and _is_finite(errors) and _is_finite(update) else 0.0

    def _distance(self, result: Tensor) -> float:
        return self._compared(result, distance)

    def _compared(self, result: Tensor, by: Callable[[Tensor, Tensor, Tensor | None], float]) -> float:
        if self.has_squares and _are_squares(result) and _are_squares(self.expected):
            return by(result.sqrt(), self.expected.sqrt(), None)
        return by(result, self.expected, self.start)

    @property
    def values(self) -> tuple[str, str]:
        """The program's and eager PyTorch's number, those that differ most if there are several."""
        if not self.found.numel() or self.found.shape != self.expected.shape:
            return str(tuple(self.found.shape)), str(tuple(self.expected.shape))
        found, expected = self.found.detach().cpu().flatten(), self.expected.detach().cpu().flatten()
        wide = torch.complex128 if expected.is_complex() else torch.float64
        differences = (found.to(wide) - expected.to(wide)).abs()
        place = int(torch.where(differences.isnan(), float("inf"), differences).argmax())
        return _number(found[place]), _number(expected[place])

    def __str__(self) -> str:
        return self.name if self.kind == "output" else f"the {_WORDS[self.kind]} {self.name}"


def _are_squares(tensor: Tensor) -> bool:
    """Whether a tensor can contain squares; those of complex numbers are kept as pairs of squares."""
    return not tensor.is_complex() and bool((tensor >= 0).all())


_WORDS = {"buffer": "buffer", "optimizer": "optimizer state", "weight": "updated weight"}


def _number(tensor: Tensor) -> str:
    value = tensor.item()
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def quantities(found: Outcome, expected: Outcome, start: Start, names: Sequence[str]) -> Iterator[Quantity]:
    """Everything that both have computed, in the order in which a mistake spreads."""

    def quantity(kind: str, name: str, of: Callable[[Outcome], Tensor], before: Tensor | None = None) -> Quantity:
        return Quantity(kind=kind, name=name, of=of, found=of(found), expected=of(expected), start=before)

    for position, name in enumerate(names):
        yield quantity("output", name, partial(_output, position))
    for replica, buffers in found.buffers.items():
        suffix = f" of replica {replica}" if len(found.buffers) > 1 else ""
        for name in buffers:
            yield quantity("buffer", f"{name}{suffix}", partial(_buffer, replica, name))
    # Before the weights: Adam's weights hide the size of a gradient, and its state shows it.
    for slot in found.slots:
        if slot in expected.slots:
            state = quantity("optimizer", f"{slot.name} of {slot.parameter}", partial(_slot, slot))
            yield replace(state, has_squares=slot.name in _SQUARES)
    for name in found.parameters:
        if name in expected.parameters:
            yield quantity("weight", name, partial(_parameter, name), start.parameters[name])


def _output(position: int, outcome: Outcome) -> Tensor:
    return outcome.outputs[position]


def _buffer(replica: int, name: str, outcome: Outcome) -> Tensor:
    return outcome.buffers[replica][name]


def _slot(slot: Slot, outcome: Outcome) -> Tensor:
    return outcome.slots[slot]


def _parameter(name: str, outcome: Outcome) -> Tensor:
    return outcome.parameters[name]


def tolerance(dtypes: Sequence[torch.dtype]) -> float:
    """The distance that needs no explanation in a program with these types."""
    return max((_TOLERANCE[dtype] for dtype in dtypes if dtype in _TOLERANCE), default=_TOLERANCE[torch.float32])


@torch.no_grad()
def distance(found: Tensor, expected: Tensor, start: Tensor | None = None) -> float:
    """How far a result is from the expected one; 0 for equal ones, infinite for incomparable ones."""
    if found.shape != expected.shape:
        return _DIFFERENT
    found = found.to(expected.device)
    # Torch does not say whether complex tensors of half precision are equal.
    is_comparable = found.dtype == expected.dtype and found.dtype is not torch.complex32
    if not found.numel() or (is_comparable and torch.equal(found, expected)):
        return 0.0
    if not (expected.is_floating_point() or expected.is_complex()):
        return float((found != expected).double().mean())
    wide, digit = torch.promote_types(found.dtype, expected.dtype), torch.finfo(expected.dtype).eps
    if wide.itemsize == 1:
        # Few operations support eight-bit types.
        wide = torch.float32
    found, expected = found.to(wide), expected.to(wide)
    size = expected if start is None else expected - start.to(expected.device, wide)
    norms = [_norm(found - expected), _norm(size), 0.0 if start is None else _norm(start)]
    if not all(map(_is_finite, norms)):
        return _distance_of_finite(found, expected, size)
    difference, length, whole = norms
    # Storing a weight rounds it, on both sides.
    difference = max(0.0, difference - digit * whole)
    return difference / length if length else (0.0 if difference == 0.0 else _DIFFERENT)


@torch.no_grad()
def excess(found: Tensor, expected: Tensor, start: Tensor | None = None) -> float:
    """How much larger a result is than the expected one on the whole, as a fraction: 0.2 if it is 1.2 times as large.

    Rounding errors of single numbers cancel out here. A result that the expected one says nothing about has none.
    """
    is_number = expected.is_floating_point() and not expected.is_complex()
    if not is_number or found.shape != expected.shape or not found.numel():
        return 0.0
    square = along = 0.0
    # In pieces, since float64 takes up to four times the memory of the tensors.
    pieces = [each.to(expected.device).reshape(-1).split(_PIECE) for each in (found, expected)]
    starts = [None] * len(pieces[0]) if start is None else start.to(expected.device).reshape(-1).split(_PIECE)
    for mine, theirs, before in zip(*pieces, starts, strict=True):
        mine, theirs = mine.double(), theirs.double()
        size = theirs if before is None else theirs - before.double()
        square += float(size @ size)
        along += float((mine - theirs) @ size)
    return along / square if _is_finite(square) and _is_finite(along) and square else 0.0


def _distance_of_finite(found: Tensor, expected: Tensor, size: Tensor) -> float:
    """The distance of the finite elements; infinite if others are not finite."""
    finite = expected.isfinite()
    same = torch.where(finite, found.isfinite(), (found == expected) | (found.isnan() & expected.isnan()))
    if not bool(same.all()):
        return _DIFFERENT
    difference = _norm(torch.where(finite, found - expected, 0.0))
    length = _norm(torch.where(finite, size, 0.0))
    return difference / length if length else (0.0 if difference == 0.0 else _DIFFERENT)


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor, dtype=torch.complex128 if tensor.is_complex() else torch.float64))


def _is_finite(number: float) -> bool:
    return number == number and abs(number) != float("inf")


def worst(quantities: Sequence[Quantity]) -> Mapping[str, float]:
    """The largest distance of each kind."""
    found: dict[str, float] = {}
    for quantity in quantities:
        found[quantity.kind] = max(found.get(quantity.kind, 0.0), quantity.distance)
    return found
