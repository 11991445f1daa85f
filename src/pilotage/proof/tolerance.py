"""How far two runs may be apart because of rounding.

A first, narrow tolerance follows from the type in which products are computed, and grows with the number of updates. If
a port is outside of it, the original runs once more with errors of the size of rounding added to its gradients and
weights at each update. How far that run is from the first one shows what rounding does in this script: it may be a
millionth, or the whole value in a chaotic script. A port may differ several times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["UNITS", "Tolerance", "unit_of"]

UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11}
"""The largest relative error of one rounding."""

_FIRST = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2, "float16": 4e-3}
"""The relative difference of losses that is tolerated at the first update without a further run."""

_WEIGHTS = {"float64": 1e-9, "float32": 1e-3, "bfloat16": 0.1, "float16": 2e-2}
"""The difference of weights, relative to how far they have moved, that is tolerated likewise."""

_FACTOR = 10.0
"""A port may be this many times as far from the original as its repetition with rounding errors."""


def unit_of(types: Sequence[str]) -> str:
    """The widest unit of rounding among some types, by its name."""
    known = [name for name in types if name in UNITS]
    return max(known, key=lambda name: UNITS[name], default="float32")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is tolerated at each update."""

    type: str = "float32"
    """The type whose rounding is tolerated."""

    losses: Sequence[float] = ()
    """How far the losses of the run with rounding errors were from the original's, relative, at each update."""

    weights: dict[int, float] = field(default_factory=dict)
    """The same of the weights, where they were digested."""

    def of_loss(self, step: int) -> float:
        """The relative difference of losses that rounding explains at an update, counted from 1."""
        plain = _FIRST[self.type] * (1 + step / 5)
        return max([plain, *(_FACTOR * each for each in self.losses[:step])])

    def of_weights(self, step: int) -> float:
        """The difference of weights, relative to their way so far, that rounding explains."""
        plain = _WEIGHTS[self.type] * (1 + step / 20)
        return max([plain, *(_FACTOR * each for number, each in self.weights.items() if number <= step)])
