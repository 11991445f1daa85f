"""The time of an operation on an IPU, whose tiles compute, synchronise and exchange in turns."""

from __future__ import annotations

import math

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.timing.cost import Cost
from pilotage.prediction.trace.work import Convolution, Work, WorkKind

__all__ = ["tile_cost"]

_SUPERSTEPS = {
    WorkKind.PRODUCT: 1.0,
    WorkKind.CONVOLUTION: 1.0,
    WorkKind.ATTENTION: 3.0,
    WorkKind.NORMALIZATION: 1.0,
    WorkKind.REDUCTION: 0.67,
    WorkKind.RESIZING: 0.67,
    WorkKind.GATHER: 0.67,
}
"""The number of compute steps, relative to the device model's; an elementwise operation has a single step."""

_EXCHANGED = {
    WorkKind.PRODUCT: 1.0,
    WorkKind.CONVOLUTION: 1.0,
    WorkKind.ATTENTION: 1.0,
    WorkKind.TRANSPOSITION: 1.0,
    WorkKind.GATHER: 1.0,
    WorkKind.NORMALIZATION: 0.1,
    WorkKind.REDUCTION: 0.1,
}
"""The fraction of an operation's reads that comes from other tiles; elementwise operations read their own tile."""


def tile_cost(work: Work, model: DeviceModel) -> Cost:
    """The time of one operation."""
    tiles = model.tiles
    if work.kind is WorkKind.FREE or tiles is None:
        return Cost()
    if work.kind is WorkKind.TRANSFER:
        way = model.link.streaming_bytes_per_second or model.host.link_bytes_per_second
        return Cost(host=work.written / way)
    unit = tiles.supersteps * tiles.superstep_cycles / tiles.clock_hertz
    steps = _SUPERSTEPS.get(work.kind, 1 / tiles.supersteps) * max(1, len(work.parts)) * work.tensors
    exchanged = work.read * _EXCHANGED.get(work.kind, 0.0)
    way = tiles.count * tiles.exchange_bytes_per_cycle * tiles.clock_hertz
    return Cost(compute=_compute(work, model), exchange=exchanged / way, synchronisation=unit * steps)


def _compute(work: Work, model: DeviceModel) -> float:
    compute = model.compute
    traffic = work.bytes / model.traffic.memory
    rate = {"float16": compute.float16, "bfloat16": compute.bfloat16}.get(work.type, compute.float32)
    match work.kind:
        case WorkKind.PRODUCT:
            return max(work.flops / (rate * compute.product_efficiency), traffic)
        case WorkKind.CONVOLUTION:
            flops = sum(_filled(part) for part in work.parts if isinstance(part, Convolution)) or work.flops
            return max(flops / (rate * compute.convolution_efficiency), traffic)
        case WorkKind.ATTENTION:
            return max(work.flops / (rate * compute.attention_efficiency), traffic)
        case WorkKind.NORMALIZATION:
            return traffic / model.traffic.normalization
        case WorkKind.TRANSPOSITION:
            return traffic / model.traffic.transposition
        case WorkKind.GATHER:
            return traffic / model.traffic.scatter
        case _:
            return max(traffic, work.flops / (compute.vector or compute.float32))


_INTO, _OUT = 16, 8
"""How many inputs and outputs the matrix unit of a tile processes at once."""


def _filled(part: Convolution) -> int:
    """The work of a pass with padded inputs and outputs, in each of its groups."""
    into = _INTO * math.ceil(part.channels_in * part.taps / _INTO)
    out = _OUT * math.ceil(part.channels_out / _OUT)
    return 2 * part.pixels * into * out * part.groups
