"""Electronic noise above threshold, by plane and half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cosmictagger.data.detector import HEIGHT
from cosmictagger.data.events import Array

THRESHOLD = 5.0
"""The smallest charge that is kept."""
FIRST_WIRE = (31, 31, 191)
LAST_WIRE = (2016, 2016, 1856)
"""Columns that have a wire."""

_RUNS_PER_WIRE = ((0.36, 4.2), (4.4, 0.33), (0.085, 0.075))
"""Mean runs of noise per wire in the first and the second half of the rows, for each plane.

Wires are mirrored between the drift volumes, so induction planes swap their noise."""
_LENGTH_ENDS = 0.78
_MEAN_EXCESS = 0.72
_WIRE_SPREAD = 4.0
_QUIET_BOARD = 32
"""Wires per readout board; boards are silent at times."""


@dataclass(frozen=True, eq=False, slots=True)
class Noise:
    """Noise pixels of one plane; a pixel may appear more than once."""

    row: Array
    column: Array
    charge: Array


def noise(random: np.random.Generator, plane: int) -> Noise:
    """Draw runs of consecutive ticks above threshold on single wires."""
    halves = [_half(random, plane, half) for half in (0, 1)]
    row, column, charge = (np.concatenate(parts) for parts in zip(*halves, strict=True))
    return Noise(row, column, charge)


def _half(random: np.random.Generator, plane: int, half: int) -> tuple[Array, Array, Array]:
    wires = np.arange(FIRST_WIRE[plane], LAST_WIRE[plane] + 1)
    strength = random.gamma(_WIRE_SPREAD, 1 / _WIRE_SPREAD, len(wires))
    silent = random.random(-(-len(wires) // _QUIET_BOARD)) < 0.015
    strength[np.repeat(silent, _QUIET_BOARD)[: len(wires)]] *= 0.05
    runs = random.poisson(_RUNS_PER_WIRE[plane][half] * strength)
    column = np.repeat(wires, runs)
    length = random.geometric(_LENGTH_ENDS, len(column))
    start = random.integers(0, HEIGHT // 2, len(column))
    which = np.repeat(np.arange(len(column)), length)
    within = np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length)
    row = np.minimum(start[which] + within, HEIGHT // 2 - 1) + half * (HEIGHT // 2)
    return row, column[which], THRESHOLD + random.exponential(_MEAN_EXCESS, len(which))
