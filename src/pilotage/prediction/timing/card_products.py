"""The time of matrix products and of attention on a card.

A product is divided into tiles, which the processors of a card compute in waves; the last wave may be nearly empty.
"""

from __future__ import annotations

import math

from pilotage.prediction.devices.model import DeviceModel, ProductTiles
from pilotage.prediction.timing.card_rates import HALF, product_rate, traffic_seconds
from pilotage.prediction.timing.cost import Arithmetic
from pilotage.prediction.trace.work import Product, Work

__all__ = ["attention_seconds", "product_seconds"]

_SHAPES = ((1.0, 1.0, 1.0), (0.5, 1.0, 0.85), (0.5, 0.5, 0.7), (0.25, 0.5, 0.45), (0.25, 0.25, 0.25))
"""Smaller tiles: the fractions of rows and columns, and how well such a kernel multiplies."""

_SPLITS = (1, 2, 4, 8, 16)
"""The numbers of parts into which a product may divide its inner dimension; the parts are added afterwards."""


def product_seconds(part: Product, work: Work, model: DeviceModel, arithmetic: Arithmetic) -> float:
    """The time of one product of matrices."""
    rate = product_rate(model, work.type, arithmetic.products_in_tf32) * model.compute.product_efficiency
    if not work.aligned and work.type in HALF:
        rate *= model.compute.misaligned_efficiency
    tiles = model.products or ProductTiles(processors=1)
    return max(_in_tiles(part, rate, tiles), traffic_seconds(work.bytes, model))


def attention_seconds(work: Work, model: DeviceModel) -> float:
    """The time of attention whose matrix of scores is never stored."""
    is_half = work.type in HALF
    efficiency = model.compute.attention_efficiency if is_half else model.compute.attention_float32_efficiency
    rate = product_rate(model, work.type, False) * efficiency
    # Blocks of 64 positions; short sequences leave them partly empty and have little to do in each.
    blocks = 64 * math.ceil(work.elements / 64) if work.elements else 64
    filled = (work.elements / blocks) ** 2 * blocks / (blocks + 64) if work.elements else 1.0
    slower = (1.25 if is_half else 0.95) if work.backward else 1.0
    if work.causal:
        # Blocks on the diagonal are computed as a whole, and the last rows have the most to do.
        slower *= 1.24
    return max(work.flops * slower / (rate * filled), traffic_seconds(work.bytes, model))


def _in_tiles(part: Product, rate: float, tiles: ProductTiles) -> float:
    each = rate / tiles.processors
    best = math.inf
    for high, wide, quality in _SHAPES:
        rows, columns = max(16, round(tiles.rows * high)), max(16, round(tiles.columns * wide))
        count = part.batch * math.ceil(part.m / rows) * math.ceil(part.n / columns)
        for split in _SPLITS:
            if split > 1 and part.k / split < tiles.depth:
                break
            waves = math.ceil(count * split / tiles.processors)
            seconds = waves * 2 * rows * columns * (part.k / split + tiles.depth) / (each * quality)
            best = min(best, seconds)
    return best
