"""The time of an operation on a card, which runs kernels one after the other.

A kernel takes as long as its arithmetic or its memory traffic, whichever is longer, and a little to start. Matrix
products are divided into tiles, which the processors of a card compute in waves; the last wave may be nearly empty.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pilotage.prediction.devices.model import DeviceModel, ProductTiles
from pilotage.prediction.timing.cost import Arithmetic, Cost
from pilotage.prediction.trace.work import Convolution, Product, Work, WorkKind

__all__ = ["card_cost"]

_SHAPES = ((1.0, 1.0, 1.0), (0.5, 1.0, 0.85), (0.5, 0.5, 0.7), (0.25, 0.5, 0.45), (0.25, 0.25, 0.25))
"""Smaller tiles: the fractions of rows and columns, and how well such a kernel multiplies."""

_SPLITS = (1, 2, 4, 8, 16)
"""Into how many parts a product may divide its inner dimension; the parts are added afterwards."""

_CHUNK, _BLOCKS, _TENSORS = 65536, 320, 48
"""A kernel on lists handles at most so many chunks of so many elements, of at most so many tensors."""


def card_cost(work: Work, model: DeviceModel, arithmetic: Arithmetic) -> Cost:
    """The time of one operation."""
    match work.kind:
        case WorkKind.FREE:
            return Cost()
        case WorkKind.PRODUCT:
            parts = [_product(part, work, model, arithmetic) for part in work.parts if isinstance(part, Product)]
            return _together(parts, model, len(parts))
        case WorkKind.CONVOLUTION:
            passes = [part for part in work.parts if isinstance(part, Convolution)]
            found = _together([_convolution(part, work, model, arithmetic) for part in passes], model, len(passes))
            starting = sum(1 if part.way == "forward" else 2 for part in passes) * model.overheads.convolution_seconds
            return replace(found, launch=found.launch + starting)
        case WorkKind.ATTENTION:
            return _together([_attention(work, model, arithmetic)], model, 3 if work.backward else 1)
        case WorkKind.TRANSFER:
            return Cost(host=work.written / model.host.link_bytes_per_second, launch=model.overheads.operation_seconds)
        case _:
            return _streaming(work, model)


def _streaming(work: Work, model: DeviceModel) -> Cost:
    """An operation that memory traffic limits."""
    traffic, overheads = model.traffic, model.overheads
    seconds = _traffic(int(work.read * work.passes) + work.written, model) / _fraction(work, model)
    twice = 2.0 if work.backward else 1.0
    if work.lanes and work.type != "float32" and not work.backward:
        # Statistics and values take a kernel each, where cuDNN has one for float32.
        twice = 1.5
    each = {
        WorkKind.NORMALIZATION: traffic.normalization_seconds * twice,
        WorkKind.RESIZING: traffic.resizing_seconds,
        WorkKind.TRANSPOSITION: traffic.transposition_seconds,
    }
    seconds = max(seconds, work.elements * each.get(work.kind, 0.0))
    if work.lanes:
        # One processor sums all of a channel, however many others have nothing to do.
        seconds = max(seconds, work.elements / work.lanes * traffic.lane_seconds * twice)
    extra = {WorkKind.REDUCTION: overheads.reduction_seconds, WorkKind.RANDOM: overheads.operation_seconds}
    if work.kind is WorkKind.GATHER and work.written > 2 * work.read:
        extra[WorkKind.GATHER] = overheads.scatter_seconds
    return Cost(
        compute=max(seconds, work.flops / (model.compute.vector or model.compute.float32)),
        launch=_kernels(work) * overheads.operation_seconds + extra.get(work.kind, 0.0),
    )


def _attention(work: Work, model: DeviceModel, arithmetic: Arithmetic) -> float:
    half = work.type in ("float16", "bfloat16")
    efficiency = model.compute.attention_efficiency if half else model.compute.attention_float32_efficiency
    rate = _rate(model, work.type, False) * efficiency
    # Blocks of 64 positions; short sequences leave them partly empty and have little to do in each.
    blocks = 64 * math.ceil(work.elements / 64) if work.elements else 64
    filled = (work.elements / blocks) ** 2 * blocks / (blocks + 64) if work.elements else 1.0
    slower = 1.25 if work.backward else 1.0
    return max(work.flops * slower / (rate * filled), _traffic(work.bytes, model))


def _together(seconds: list[float], model: DeviceModel, kernels: int) -> Cost:
    overheads = model.overheads
    return Cost(compute=sum(seconds), launch=kernels * (overheads.operation_seconds + overheads.product_seconds))


def _product(part: Product, work: Work, model: DeviceModel, arithmetic: Arithmetic) -> float:
    rate = _rate(model, work.type, arithmetic.products_in_tf32) * model.compute.product_efficiency
    if not work.aligned and work.type in ("float16", "bfloat16"):
        rate *= model.compute.misaligned_efficiency
    tiles = model.products or ProductTiles(processors=1)
    return max(_in_tiles(part.batch, part.m, part.n, part.k, rate, tiles), _traffic(work.bytes, model))


def _convolution(part: Convolution, work: Work, model: DeviceModel, arithmetic: Arithmetic) -> float:
    """The pass as a matrix product, and the operands in another layout."""
    moving = _traffic(part.moved, model)
    if part.groups > 1 and part.channels_in < 4:
        # Each channel for itself: there is nothing to multiply matrices for.
        return 4 * moving
    compute = model.compute
    half = work.type in ("float16", "bfloat16") and compute.convolution_half_efficiency
    efficiency = compute.convolution_half_efficiency if half else compute.convolution_efficiency
    rate = _rate(model, work.type, arithmetic.convolutions_in_tf32) * efficiency
    tiles = model.products or ProductTiles(processors=1)
    into = 4 if part.channels_in < 3 else 8 * math.ceil(part.channels_in / 8)
    out, wide = part.channels_out, tiles.columns_of_convolutions
    narrow = into if part.way == "input" else out
    flops = 2 * part.pixels * into * out * part.taps * part.groups
    # Few channels leave a multiplication partly empty, very few leave most of it empty.
    filled = min(1.0, narrow / wide) * min(1.0, math.sqrt(2 * narrow / wide))
    share = min(1.0, math.ceil(part.pixels / tiles.rows) * math.ceil(out / wide) / tiles.processors)
    seconds = flops / (rate * filled * max(share, 0.5)) * _passes(part, tiles)
    if part.is_plain:
        return max(seconds, moving) + 0.5 * min(seconds, moving)
    reordering = 2 * moving if tiles.reordering and not part.channels_last else 0.0
    return max(seconds, moving) + reordering


def _passes(part: Convolution, tiles: ProductTiles) -> float:
    return {"input": tiles.input_pass, "weight": tiles.weight_pass}.get(part.way, 1.0)


def _in_tiles(batch: int, m: int, n: int, k: int, rate: float, tiles: ProductTiles) -> float:
    each = rate / tiles.processors
    best = math.inf
    for high, wide, quality in _SHAPES:
        rows, columns = max(16, round(tiles.rows * high)), max(16, round(tiles.columns * wide))
        count = batch * math.ceil(m / rows) * math.ceil(n / columns)
        for split in _SPLITS:
            if split > 1 and k / split < tiles.depth:
                break
            waves = math.ceil(count * split / tiles.processors)
            seconds = waves * 2 * rows * columns * (k / split + tiles.depth) / (each * quality)
            best = min(best, seconds)
    return best


def _rate(model: DeviceModel, kind: str, tf32: bool) -> float:
    compute = model.compute
    match kind:
        case "float16":
            return compute.float16
        case "bfloat16":
            return compute.bfloat16
        case "float64":
            return compute.float64 or compute.float32 / 2
        case _:
            return compute.tf32 if tf32 and compute.tf32 else compute.float32


def _traffic(bytes_: int, model: DeviceModel) -> float:
    """The seconds for so many bytes; what fits in the cache often lies there still."""
    traffic = model.traffic
    if not traffic.cache_bytes or bytes_ >= 2 * traffic.cache_bytes:
        return bytes_ / traffic.memory
    cached = min(1.0, 2 - bytes_ / traffic.cache_bytes) if bytes_ > traffic.cache_bytes else 1.0
    return bytes_ * (cached / traffic.cache + (1 - cached) / traffic.memory)


def _fraction(work: Work, model: DeviceModel) -> float:
    traffic = model.traffic
    match work.kind:
        case WorkKind.NORMALIZATION:
            return traffic.normalization
        case WorkKind.REDUCTION:
            return traffic.reduction
        case WorkKind.TRANSPOSITION:
            return traffic.transposition
        case WorkKind.GATHER:
            return traffic.scatter
        case WorkKind.RANDOM:
            return traffic.random
        case WorkKind.RESIZING:
            return traffic.resizing
        case _ if work.flops == 0 and work.written > work.read > 0:
            return traffic.widening
        case _ if work.mixed:
            return traffic.widening
        case _ if work.tensors > 1:
            return traffic.lists
        case _:
            return 1.0


def _kernels(work: Work) -> int:
    """How many kernels an operation starts."""
    if work.kernels:
        return work.kernels
    if work.kind is WorkKind.NORMALIZATION:
        return 2
    if work.tensors == 1 or work.mixed:
        return work.tensors
    chunks = work.tensors + work.written // 4 // _CHUNK
    return max(1, math.ceil(work.tensors / _TENSORS), math.ceil(chunks / _BLOCKS))
