"""Whether another way of running a program computes the same.

Kernels that mistake a layout, or a compiler that errs, are off by far. But so are sound ones where a program is chaotic: the
gradients of the first layers of a deep network in bfloat16 depend on how each sum was rounded. So the graph itself is run again,
rounding each result otherwise, and what that changes is what another way may change too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

_TOLERANCE = {torch.float16: 5e-2, torch.bfloat16: 5e-2}
_TOLERANCE_OF_OTHERS = 1e-2
_LENIENCE = 3.0
"""How many times the effect of rounding a way may be off."""

_FEW = 64
"""Fewer numbers than this may hide the effect of rounding by chance."""


class Yardstick:
    """The results of a program, and how far from them those of another way may be."""

    def __init__(
        self, expected: Sequence[Tensor], nudged: Iterable[Sequence[Tensor]] = (), names: Sequence[str] = ()
    ) -> None:
        self._expected = expected
        self._names = names or [f"result {number}" for number in range(len(expected))]
        self._noise = [0.0] * len(expected)
        self.widen(nudged)

    def widen(self, nudged: Iterable[Sequence[Tensor]]) -> None:
        """Learn from more results that were rounded otherwise."""
        # One after the other: each is as large as everything that the program keeps.
        for results in nudged:
            self._noise = [
                max(known, _distance(*pair))
                for known, pair in zip(self._noise, zip(self._expected, results, strict=True), strict=True)
            ]

    def agrees(self, found: Sequence[Tensor]) -> bool:
        """Whether the results of another way are the same within the effect of rounding."""
        return not self.objection(found)

    def objection(self, found: Sequence[Tensor]) -> str:
        """Which result of another way is off the most, and by how much; nothing if all agree."""
        worst = max(self._noise, default=0.0)
        objections: list[tuple[float, str]] = []
        for name, left, right, own in zip(self._names, self._expected, found, self._noise, strict=True):
            distance = _distance(left, right)
            rounding = _LENIENCE * (worst if left.numel() < _FEW else own)
            allowed = max(_TOLERANCE.get(left.dtype, _TOLERANCE_OF_OTHERS), rounding)
            if distance > allowed:
                what = f"{name}, {tuple(left.shape)} of {str(left.dtype).removeprefix('torch.')}"
                objections.append(
                    (distance / allowed, f"{what}, is off by {distance:.2g}, and {allowed:.2g} is rounding")
                )
        return max(objections)[1] if objections else ""


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
