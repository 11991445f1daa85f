"""The time of an operation on a card, which runs kernels one after the other.

A kernel takes as long as its arithmetic or its memory traffic, whichever is longer, plus a little to start.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.timing.card_convolutions import pass_seconds
from pilotage.prediction.timing.card_products import attention_seconds, product_seconds
from pilotage.prediction.timing.card_rates import traffic_seconds
from pilotage.prediction.timing.cost import Arithmetic, Cost
from pilotage.prediction.trace.work import Convolution, Product, Work, WorkKind

__all__ = ["card_cost"]

_CHUNK, _BLOCKS, _TENSORS = 65536, 320, 48
"""The elements of a chunk, and the most chunks and tensors that one kernel on lists handles."""

_MOST_ROWS = 65536
"""With more rows, the backward pass of a layer normalisation divides them among processors."""


def card_cost(work: Work, model: DeviceModel, arithmetic: Arithmetic) -> Cost:
    """The time of one operation."""
    match work.kind:
        case WorkKind.FREE:
            return Cost()
        case WorkKind.PRODUCT:
            products = [part for part in work.parts if isinstance(part, Product)]
            return _together([product_seconds(part, work, model, arithmetic) for part in products], model)
        case WorkKind.CONVOLUTION:
            return _convolution(work, model, arithmetic)
        case WorkKind.ATTENTION:
            return _together([attention_seconds(work, model)], model, 3 if work.backward else 1)
        case WorkKind.TRANSFER:
            return Cost(host=work.written / model.host.link_bytes_per_second, launch=model.overheads.operation_seconds)
        case _:
            return _streaming(work, model)


def _convolution(work: Work, model: DeviceModel, arithmetic: Arithmetic) -> Cost:
    passes = [part for part in work.parts if isinstance(part, Convolution)]
    found = _together([pass_seconds(part, work.type, model, arithmetic) for part in passes], model)
    backward = sum(part.way != "forward" for part in passes)
    return replace(found, launch=found.launch + backward * model.overheads.convolution_seconds)


def _together(seconds: list[float], model: DeviceModel, kernels: int = 0) -> Cost:
    overheads = model.overheads
    started = kernels or len(seconds)
    return Cost(compute=sum(seconds), launch=started * (overheads.operation_seconds + overheads.product_seconds))


def _streaming(work: Work, model: DeviceModel) -> Cost:
    """An operation that memory traffic limits."""
    seconds = traffic_seconds(int(work.read * work.passes) + work.written, model) / _fraction(work, model)
    seconds = max(seconds, _least(work, model), work.flops / (model.compute.vector or model.compute.float32))
    if work.rows and work.backward:
        seconds += min(work.rows, _MOST_ROWS) * model.traffic.normalization_row_seconds
    return Cost(compute=seconds, launch=_starting(work, model))


def _least(work: Work, model: DeviceModel) -> float:
    """The least time for the elements, whatever their size in bytes."""
    traffic = model.traffic
    twice = 2.0 if work.backward else 1.0
    if work.lanes and work.type != "float32" and not work.backward:
        # Statistics and values take a kernel each, where cuDNN has one for float32.
        twice = 1.5
    if work.kind is WorkKind.REDUCTION and work.lanes:
        # The loss of an image: only a few processors sum all of its pixels.
        return work.elements / work.lanes * traffic.loss_seconds
    each = {
        WorkKind.NORMALIZATION: 0.0 if work.rows and work.backward else traffic.normalization_seconds * twice,
        WorkKind.RESIZING: traffic.pool_backward_seconds if work.backward else traffic.resizing_seconds,
        WorkKind.TRANSPOSITION: traffic.transposition_seconds,
    }.get(work.kind, 0.0)
    if _converts(work):
        each = max(each, traffic.conversion_seconds)
    if work.strided:
        # Joining tensors computes two addresses for each element.
        each = max(each, traffic.strided_seconds * (1.3 if work.tensors > 1 else 1.0))
    if work.lanes:
        # One processor sums a whole channel, even if others are idle.
        return max(work.elements * each, work.elements / work.lanes * traffic.lane_seconds * twice)
    return work.elements * each


def _starting(work: Work, model: DeviceModel) -> float:
    overheads = model.overheads
    extra = 0.0
    match work.kind:
        case WorkKind.REDUCTION:
            extra = overheads.split_reduction_seconds if work.split else 0.0
            extra = extra or overheads.reduction_seconds
        case WorkKind.RANDOM:
            extra = overheads.operation_seconds
        case WorkKind.RESIZING:
            extra = overheads.resizing_seconds
        case WorkKind.GATHER if work.backward:
            extra = overheads.scatter_seconds
    kernels = _kernels(work)
    if _converts(work):
        extra += kernels * overheads.conversion_seconds
    return kernels * overheads.operation_seconds + extra


def _converts(work: Work) -> bool:
    """Whether its kernels convert types, element by element."""
    is_widening = work.kind is WorkKind.ELEMENTWISE and work.flops == 0 and work.written > work.read > 0
    return is_widening or work.mixed


def _fraction(work: Work, model: DeviceModel) -> float:
    """The fraction of the bandwidth that such an operation reaches."""
    traffic = model.traffic
    match work.kind:
        case WorkKind.NORMALIZATION:
            return traffic.normalization
        case WorkKind.REDUCTION:
            return traffic.reduction
        case WorkKind.TRANSPOSITION:
            return traffic.transposition
        case WorkKind.GATHER:
            return traffic.scatter if work.backward else 1.0
        case WorkKind.RANDOM:
            return traffic.random
        case WorkKind.RESIZING:
            return traffic.resizing
        case _ if work.tensors > 1 and not work.mixed:
            return traffic.lists
        case _:
            return 1.0


def _kernels(work: Work) -> int:
    """How many kernels an operation starts."""
    if work.kernels:
        return work.kernels
    if work.kind is WorkKind.NORMALIZATION:
        return 2
    if work.tensors == 1 or work.mixed or work.strided:
        return work.tensors
    chunks = work.tensors + work.written // 4 // _CHUNK
    return max(1, math.ceil(work.tensors / _TENSORS), math.ceil(chunks / _BLOCKS))
