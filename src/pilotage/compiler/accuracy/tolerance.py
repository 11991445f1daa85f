"""How far results of another way of running a program may differ from those of the graph.

A kernel that misreads a layout, or a compiler bug, gives large errors. But so does correct code if a program is
chaotic: the gradients of the first layers of a deep network in bfloat16 depend on the rounding of every sum. So the
graph runs again with rounding noise in each result, and the effect of that noise is tolerated.

Agreement does not say which way is right: a kernel that adds a million numbers sequentially agrees with one that adds
them pairwise to only three digits. So if the graph was also computed in float64, the error of another way may be at
most a few times that of the graph.

A program with decisions (a ReLU, the maximum of a pool) jumps where a value is close to the threshold: one decision
that rounding flips changes gradients by far more than rounding does. A few runs with plain noise may show none of
them. So before code is refused, the graph runs with loud noise as well. Where its errors grow by more than the noise,
they come from jumps, and correct code may have jumps too. For results without jumps, the limit stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

_TOLERANCE = {torch.float16: 5e-2, torch.bfloat16: 5e-2}
_DEFAULT_TOLERANCE = 1e-2
_NOISE_FACTOR = 3.0
"""Differences up to this many times the effect of rounding are tolerated."""

_ERROR_FACTOR = 5.0
"""Errors up to this many times that of the graph are tolerated."""

LOUD = 20.0
"""The amplitude of loud noise: about the error of adding thousands of numbers in another order, after some layers."""

_JUMP = 2.0
"""A result has jumps if loud noise causes this many times the error that its amplitude explains."""

_JUMP_FACTOR = 3.0
"""Jumps up to this many times those of the graph are tolerated."""

_MEANINGLESS = 0.5
"""A result with this relative error in the graph consists of rounding errors and is not compared."""

_FEW = 64
"""With fewer elements than this, the effect of rounding may be zero by chance."""


class Tolerance:
    """The results of a program, and how far those of another way may differ."""

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
        self._loud_noise, self._loud_errors = [0.0] * len(expected), [0.0] * len(expected)
        self.widen(noisy)

    def widen(self, noisy: Iterable[Sequence[Tensor]]) -> None:
        """Widen the tolerance by more results with rounding noise."""
        # One at a time: each is as large as the whole state of the program.
        for results in noisy:
            self._noise = _larger(self._noise, self._distances_of(results))
            self._errors = _larger(self._errors, self._errors_of(results))

    def look_for_jumps(self, loud: Iterable[Sequence[Tensor]]) -> None:
        """Tolerate jumps that show in results with `LOUD` times the rounding noise."""
        for results in loud:
            self._loud_noise = _larger(self._loud_noise, self._distances_of(results))
            self._loud_errors = _larger(self._loud_errors, self._errors_of(results))

    def objection(self, found: Sequence[Tensor]) -> str:
        """A description of the result with the largest error; empty if all are within the tolerance."""
        objections = [*self._differing(found), *self._less_exact(found)]
        return max(objections)[1] if objections else ""

    def _differing(self, found: Sequence[Tensor]) -> Iterator[tuple[float, str]]:
        """Results that differ too much from the graph: how far beyond the tolerance, as a factor, and a description."""
        worst, worst_loud = max(self._noise, default=0.0), max(self._loud_noise, default=0.0)
        for name, left, right, own, loud in zip(
            self._names, self._expected, found, self._noise, self._loud_noise, strict=True
        ):
            distance, is_small = _distance(left, right), left.numel() < _FEW
            own, loud = (worst, worst_loud) if is_small else (own, loud)
            rounding = max(_NOISE_FACTOR * own, _jump(loud, own))
            allowed = max(_TOLERANCE.get(left.dtype, _DEFAULT_TOLERANCE), rounding)
            if distance > allowed:
                yield (
                    distance / allowed,
                    f"{_described(name, left)}, is off by {distance:.2g}, but rounding explains only {allowed:.2g}",
                )

    def _less_exact(self, found: Sequence[Tensor]) -> Iterator[tuple[float, str]]:
        """Results that differ too much from float64: how far beyond the tolerance, as a factor, and a description."""
        worst, worst_loud = (
            max((error for error in errors if error < _MEANINGLESS), default=0.0)
            for errors in (self._errors, self._loud_errors)
        )
        for name, left, own, loud, error in zip(
            self._names, self._expected, self._errors, self._loud_errors, self._errors_of(found), strict=True
        ):
            if own >= _MEANINGLESS:
                continue
            is_small = left.numel() < _FEW
            known = max(own, _digit(left), worst if is_small else 0.0)
            jump = _jump(max(loud, worst_loud if is_small else 0.0), known)
            # A result that is as far from float64 as zeros are is wrong, whatever jumps explain.
            allowed = max(_ERROR_FACTOR * known, min(jump, _MEANINGLESS))
            if error > allowed:
                yield (
                    error / allowed,
                    f"{_described(name, left)}, is off float64 by {error:.2g}, the graph by {own:.2g}",
                )

    def _distances_of(self, results: Sequence[Tensor]) -> list[float]:
        return [_distance(*pair) for pair in zip(self._expected, results, strict=True)]

    def _errors_of(self, results: Sequence[Tensor]) -> list[float]:
        """The relative errors of results compared with float64; zero if there is no reference."""
        if self._exact is None:
            return [0.0] * len(results)
        return [_error(*each) for each in zip(results, self._expected, self._exact, strict=True)]


def _larger(some: Sequence[float], others: Sequence[float]) -> list[float]:
    return [max(pair) for pair in zip(some, others, strict=True)]


def _jump(loud: float, own: float) -> float:
    """What jumps may add, from the error with loud noise and with plain noise; zero if there are none."""
    return _JUMP_FACTOR * loud if loud > _JUMP * LOUD * own else 0.0


def _described(name: str, result: Tensor) -> str:
    return f"{name}, {tuple(result.shape)} of {str(result.dtype).removeprefix('torch.')}"


def _digit(result: Tensor) -> float:
    return torch.finfo(result.dtype).eps if result.is_floating_point() or result.is_complex() else 0.0


def _error(result: Tensor, expected: Tensor, exact: Tensor) -> float:
    """The relative error; elements that are not finite in the graph or in float64 are ignored."""
    if exact.dtype == expected.dtype:
        # The reference has the same precision as the graph, so it is not better.
        return 0.0
    compared = expected.isfinite() & exact.isfinite() & result.isfinite()
    difference = torch.where(compared, result.to(exact.dtype) - exact, 0.0)
    size = torch.where(compared, exact, 0.0).norm()
    return float(difference.norm() / size.clamp_min(torch.finfo(exact.dtype).tiny))


def _distance(left: Tensor, right: Tensor) -> float:
    """The largest difference, relative to the element plus the largest element; infinite if only one is finite."""
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
