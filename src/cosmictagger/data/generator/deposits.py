"""Ionisation in the detector before readout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cosmictagger.data.events import Array

_RECOMBINATION, _BIRKS = 0.8, 0.0696
CHARGE_PER_MEV = 175.0
"""Scale of the images: a muon deposits about 260 per centimetre."""


@dataclass(frozen=True, eq=False, slots=True)
class Deposits:
    """Points where charge is freed."""

    points: Array
    """float64 (n, 3), centimetres."""
    charge: Array
    """float64 (n,), in the images' unit."""

    def __len__(self) -> int:
        return len(self.charge)


NOTHING = Deposits(np.empty((0, 3)), np.empty(0))


def combined(parts: Sequence[Deposits]) -> Deposits:
    """Concatenate deposits."""
    if not parts:
        return NOTHING
    return Deposits(np.concatenate([part.points for part in parts]), np.concatenate([part.charge for part in parts]))


def freed_charge(loss: Array, step: float) -> Array:
    """Charge that escapes recombination, for a loss in MeV per centimetre: dense tracks lose a larger share."""
    return CHARGE_PER_MEV * step * _RECOMBINATION * loss / (1.0 + _BIRKS * loss)
