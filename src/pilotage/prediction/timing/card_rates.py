"""How fast a card moves and multiplies."""

from __future__ import annotations

from pilotage.prediction.devices.model import DeviceModel

__all__ = ["HALF", "product_rate", "traffic_seconds"]

HALF = ("float16", "bfloat16")


def product_rate(model: DeviceModel, kind: str, tf32: bool) -> float:
    """The peak of products of a type."""
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


def traffic_seconds(bytes_: int, model: DeviceModel) -> float:
    """The seconds to read or write some bytes; what fits in the cache is often still there."""
    traffic = model.traffic
    if not traffic.cache_bytes or bytes_ >= 2 * traffic.cache_bytes:
        return bytes_ / traffic.memory
    cached = min(1.0, 2 - bytes_ / traffic.cache_bytes) if bytes_ > traffic.cache_bytes else 1.0
    return bytes_ * (cached / traffic.cache + (1 - cached) / traffic.memory)
