"""The time of an operation on a processor."""

from __future__ import annotations

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.timing.cost import Cost
from pilotage.prediction.trace.work import Work, WorkKind

__all__ = ["processor_cost"]


def processor_cost(work: Work, model: DeviceModel) -> Cost:
    """The time of one operation: arithmetic or traffic, whichever takes longer."""
    if work.kind is WorkKind.FREE:
        return Cost()
    compute, traffic = model.compute, model.traffic
    fast = traffic.cache and work.bytes < traffic.cache_bytes
    moving = work.bytes / (traffic.cache if fast else traffic.memory)
    rates = {"float16": compute.float16, "bfloat16": compute.bfloat16, "float64": compute.float64}
    rate = rates.get(work.type) or compute.float32
    efficiency = {
        WorkKind.PRODUCT: compute.product_efficiency,
        WorkKind.CONVOLUTION: compute.convolution_efficiency,
        WorkKind.ATTENTION: compute.attention_efficiency,
    }
    fractions = {
        WorkKind.NORMALIZATION: traffic.normalization,
        WorkKind.REDUCTION: traffic.reduction,
        WorkKind.TRANSPOSITION: traffic.transposition,
        WorkKind.GATHER: traffic.scatter,
    }
    if work.kind in efficiency:
        seconds = max(work.flops / (rate * efficiency[work.kind]), moving)
    else:
        seconds = max(work.flops / (compute.vector or compute.float32), moving / fractions.get(work.kind, 1.0))
    return Cost(compute=seconds, launch=model.overheads.operation_seconds * work.tensors)
