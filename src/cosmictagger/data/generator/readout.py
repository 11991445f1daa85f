"""The readout: from deposits to thresholded images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import erf

import numpy as np

from cosmictagger.data.detector import COSMIC, HEIGHT, NEUTRINO, WIDTH
from cosmictagger.data.events import Array, PlaneClusters, SparsePlane
from cosmictagger.data.generator.deposits import CHARGE_PER_MEV, Deposits, combined
from cosmictagger.data.generator.geometry import HIGH, MIDDLE_ROW, columns, inside, rows
from cosmictagger.data.generator.noise import FIRST_WIRE, LAST_WIRE, THRESHOLD, noise

_GAIN = (0.91, 0.95, 1.0)
_JITTER = (1.3, 1.3, 0.7)
"""Noise on signal pixels, in the images' unit."""
_REACH = 3
"""Rows that a deposit reaches to either side."""
_SHIFTS = 16
"""Resolution of positions within a row."""
_WIDTHS = (0.54, 0.62, 0.70, 0.78)
"""Pulse widths in rows, for charge freed at the wires up to charge freed at the cathode."""
_TRUE_WIDTH = (0.31, 0.31, 0.34)
_LEAST_TRUE_CHARGE = 0.5
"""The true charge that a pixel needs to be labelled."""


@dataclass(frozen=True, eq=False, slots=True)
class Signal:
    """Deposits of one origin."""

    deposits: Deposits
    delay: float
    """Rows."""
    label: int


@dataclass(frozen=True, eq=False, slots=True)
class Arrivals:
    """All deposits of an event that reach the wires."""

    points: Array
    charge: Array
    row: Array
    label: Array
    source: Array
    """The signal of each deposit."""


def arrivals(signals: list[Signal]) -> Arrivals:
    """Deposits in the volume whose charge arrives while their half of the detector is read."""
    everything = combined([signal.deposits for signal in signals])
    counts = [len(signal.deposits) for signal in signals]
    delay = np.repeat([signal.delay for signal in signals], counts)
    label = np.repeat(np.array([signal.label for signal in signals], np.uint8), counts)
    points = everything.points
    row = rows(points, delay)
    first_half = points[:, 0] < 0
    in_time = np.where(first_half, (row >= 0) & (row < MIDDLE_ROW), (row >= MIDDLE_ROW) & (row < HEIGHT))
    kept = inside(points) & in_time
    source = np.repeat(np.arange(len(signals)), counts)
    return Arrivals(points[kept], everything.charge[kept], row[kept], label[kept], source[kept])


def read_plane(random: np.random.Generator, plane: int, arriving: Arrivals) -> SparsePlane:
    """Read out charge above threshold, labelled by the origin of the true charge."""
    wire = np.floor(columns(plane, arriving.points)).astype(np.int64)
    read = (wire >= FIRST_WIRE[plane]) & (wire <= LAST_WIRE[plane])
    wire, row, charge = wire[read], arriving.row[read], arriving.charge[read] * _GAIN[plane]
    label, drift = arriving.label[read], np.abs(arriving.points[read, 0]) / HIGH[0]
    ids, total = _above_threshold(random, plane, _image(wire, row, charge, _pulse(drift)))
    classes = _labels(wire, row, charge, label, ids, _TRUE_WIDTH[plane])
    column, tick = np.divmod(ids, HEIGHT)
    return SparsePlane(tick.astype(np.int32), column.astype(np.int32), total, classes)


def true_clusters(plane: int, arriving: Arrivals, signals: int) -> PlaneClusters:
    """Each signal's energy before the electronics spread it."""
    wire = np.floor(columns(plane, arriving.points)).astype(np.int64)
    position = (arriving.source * WIDTH + wire) * HEIGHT + arriving.row.astype(np.int64)
    order = np.argsort(position, kind="stable")
    position, first = np.unique(position[order], return_index=True)
    energy = np.add.reduceat(arriving.charge[order], first) / CHARGE_PER_MEV if len(first) else np.empty(0)
    source, ids = np.divmod(position, WIDTH * HEIGHT)
    return PlaneClusters(np.bincount(source, minlength=signals), ids, energy.astype(np.float32))


def _above_threshold(random: np.random.Generator, plane: int, image: Array) -> tuple[Array, Array]:
    """Add noise to an image, flattened by wire; returns pixels and charges above threshold."""
    signal = np.flatnonzero(image > 0)
    image[signal] += random.normal(0, _JITTER[plane], len(signal))
    background = noise(random, plane)
    np.maximum.at(image, background.column * HEIGHT + background.row, background.charge.astype(np.float32))
    ids = np.flatnonzero(image >= THRESHOLD)
    return ids, image[ids]


def _image(wire: Array, row: Array, charge: Array, pulse: tuple[Array, Array]) -> Array:
    image = np.zeros(HEIGHT * WIDTH, np.float32)
    positions, amount = _smeared(wire, row, charge, pulse)
    np.add.at(image, positions, amount.astype(np.float32))
    return image


def _labels(wire: Array, row: Array, charge: Array, label: Array, ids: Array, width: float) -> Array:
    """The origin of most of each pixel's true charge."""
    amounts = []
    for origin in (COSMIC, NEUTRINO):
        mine = np.flatnonzero(label == origin)
        pulse = _weights((width,)), np.zeros(len(mine), np.int64)
        amounts.append(_image(wire[mine], row[mine], charge[mine], pulse)[ids])
    cosmic, neutrino = amounts
    winner = np.where(neutrino > cosmic, NEUTRINO, COSMIC)
    return np.where(np.maximum(cosmic, neutrino) > _LEAST_TRUE_CHARGE, winner, 0).astype(np.uint8)


def _smeared(wire: Array, row: Array, charge: Array, pulse: tuple[Array, Array]) -> tuple[Array, Array]:
    """Pixels and charges after spreading each deposit over neighbouring rows."""
    table, width = pulse
    middle = np.floor(row).astype(np.int64)
    shift = ((row - middle) * _SHIFTS).astype(np.int64)
    reached = middle[:, None] + np.arange(-_REACH, _REACH + 1)
    amount = charge[:, None] * table[width, shift]
    half = middle[:, None] >= MIDDLE_ROW
    read = (reached >= np.where(half, MIDDLE_ROW, 0)) & (reached < np.where(half, HEIGHT, MIDDLE_ROW))
    return (wire[:, None] * HEIGHT + reached)[read], amount[read]


def _pulse(drift: Array) -> tuple[Array, Array]:
    """The table of weights and the width of each deposit: charge spreads on a long drift."""
    steps = len(_WIDTHS)
    from_wires = np.clip(1 - drift, 0, 0.999)
    return _weights(_WIDTHS), (from_wires * steps).astype(np.int64)


@cache
def _weights(widths: tuple[float, ...]) -> Array:
    """Weights (widths, shifts, rows) of a pulse."""
    edges = np.arange(-_REACH, _REACH + 2)
    table = np.empty((len(widths), _SHIFTS, 2 * _REACH + 1))
    for number, width in enumerate(widths):
        for shift in range(_SHIFTS):
            centre = (shift + 0.5) / _SHIFTS
            table[number, shift] = np.diff([0.5 * (1 + erf((edge - centre) / width / 2**0.5)) for edge in edges])
    return table
