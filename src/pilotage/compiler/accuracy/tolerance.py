"""Whether another way of running a program computes the same.

Kernels that mistake a layout, or a compiler that errs, are off by far. But so are sound ones where a program is chaotic: the
gradients of the first layers of a deep network in bfloat16 depend on how each sum was rounded. So the graph itself is run again,
rounding each result otherwise, and what that changes is what another way may change too.

That two ways agree does not say which of them is right: a kernel that adds a million numbers one after another agrees with one that
adds them pairwise to three digits. So where the graph was also computed in float64, another way may be a few times as far from
that as the graph is, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

_TOLERANCE = {torch.float16: 5e-2, torch.bfloat16: 5e-2}
_TOLERANCE_OF_OTHERS = 1e-2
_LENIENCE = 3.0
"""How many times the effect of rounding a way may be off."""

_TIMES_AS_FAR = 5.0
"""How many times as far from float64 as the graph another way may be."""

_MEANINGLESS = 0.5
"""A result that the graph computes with an error of this share of it is made of rounding errors, and judges nobody."""

_FEW = 64
"""Fewer numbers than this may hide the effect of rounding by chance."""


class Tolerance:
    """The results of a program, and how far from them those of another way may be."""

    def __init__(
        self,
        expected: Sequence[Tensor],
        noisy: Iterable[Sequence[Tensor]] = (),
        names: Sequence[str] = (),
        exact: Sequence[Tensor] | None = None,
    ) -> None:
        self._expected = expected
        self._exact = exact
        self._names = names or [f"result {number}" for number in range(len(expected))]
        self._noise = [0.0] * len(expected)
        self._errors = self._errors_of(expected)
        self.widen(noisy)

    def widen(self, noisy: Iterable[Sequence[Tensor]]) -> None:
        """Learn from more results that were rounded otherwise."""
        # One after the other: each is as large as everything that the program keeps.
        for results in noisy:
            self._noise = [
                max(known, _distance(*pair))
                for known, pair in zip(self._noise, zip(self._expected, results, strict=True), strict=True)
            ]
            self._errors = [max(pair) for pair in zip(self._errors, self._errors_of(results), strict=True)]

    def objection(self, found: Sequence[Tensor]) -> str:
        """Which result of another way is off the most, and by how much; nothing if all agree."""
        objections = [*self._differing(found), *self._less_exact(found)]
        return max(objections)[1] if objections else ""

    def _differing(self, found: Sequence[Tensor]) -> Iterator[tuple[float, str]]:
        """How many times more than allowed results differ from the graph's, and that in words."""
        worst = max(self._noise, default=0.0)
        for name, left, right, own in zip(self._names, self._expected, found, self._noise, strict=True):
            distance = _distance(left, right)
            rounding = _LENIENCE * (worst if left.numel() < _FEW else own)
            allowed = max(_TOLERANCE.get(left.dtype, _TOLERANCE_OF_OTHERS), rounding)
            if distance > allowed:
                yield (
                    distance / allowed,
                    f"{_described(name, left)}, is off by {distance:.2g}, and {allowed:.2g} is rounding",
                )

    def _less_exact(self, found: Sequence[Tensor]) -> Iterator[tuple[float, str]]:
        """How many times more than allowed results are off float64's, and that in words."""
        worst = max((error for error in self._errors if error < _MEANINGLESS), default=0.0)
        for name, left, own, error in zip(
            self._names, self._expected, self._errors, self._errors_of(found), strict=True
        ):
            if own >= _MEANINGLESS:
                continue
            allowed = _TIMES_AS_FAR * max(own, _digit(left), worst if left.numel() < _FEW else 0.0)
            if error > allowed:
                yield (
                    error / allowed,
                    f"{_described(name, left)}, is off float64 by {error:.2g}, and the graph by {own:.2g}",
                )

    def _errors_of(self, results: Sequence[Tensor]) -> list[float]:
        """How far results are from float64, each as a share of its size; nothing where that is unknown."""
        if self._exact is None:
            return [0.0] * len(results)
        return [_error(*each) for each in zip(results, self._expected, self._exact, strict=True)]


def _described(name: str, result: Tensor) -> str:
    return f"{name}, {tuple(result.shape)} of {str(result.dtype).removeprefix('torch.')}"


def _digit(result: Tensor) -> float:
    return torch.finfo(result.dtype).eps if result.is_floating_point() or result.is_complex() else 0.0


def _error(result: Tensor, expected: Tensor, exact: Tensor) -> float:
    """The size of the difference as a share of the size; where the graph or float64 has no finite number, nothing is compared."""
    if exact.dtype == expected.dtype:
        # Computed with as many digits as the graph's, or not a number with digits: no nearer to the truth.
        return 0.0
    told = expected.isfinite() & exact.isfinite() & result.isfinite()
    difference = torch.where(told, result.to(exact.dtype) - exact, 0.0)
    size = torch.where(told, exact, 0.0).norm()
    return float(difference.norm() / size.clamp_min(torch.finfo(exact.dtype).tiny))


def _distance(left: Tensor, right: Tensor) -> float:
    """The largest difference, as a share of the value and of the largest one together; infinite where only one is finite."""
    if not left.numel():
        return 0.0
    wide = torch.complex128 if left.is_complex() else torch.float64
    left, right = left.to(wide), right.to(wide)
    finite = left.isfinite()
    if not torch.equal(finite, right.isfinite()):
        return float("inf")
    size = torch.where(finite, left.abs(), 0.0)
    scale = float(size.max().clamp_min(1e-3))
    return float((torch.where(finite, (left - right).abs(), 0.0) / (size + scale)).max())
