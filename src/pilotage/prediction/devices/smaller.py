"""A part of an IPU as a device model."""

from __future__ import annotations

from dataclasses import replace

from pilotage.errors import OptionError
from pilotage.prediction.devices.model import DeviceModel

__all__ = ["with_tiles"]


def with_tiles(model: DeviceModel, count: int) -> DeviceModel:
    """An IPU of the same kind with fewer tiles: memory, arithmetic and bandwidth shrink with them."""
    tiles = model.tiles
    if tiles is None or not 1 <= count <= tiles.count:
        raise OptionError(f"{model.title} has no {count} tiles.")
    share = count / tiles.count
    compute, traffic = model.compute, model.traffic
    return replace(
        model,
        title=f"{count} tiles of {model.title}",
        memory=replace(model.memory, capacity_bytes=count * tiles.memory_bytes),
        compute=replace(
            compute,
            float32=compute.float32 * share,
            float16=compute.float16 * share,
            bfloat16=compute.bfloat16 * share,
            float64=compute.float64 * share,
            tf32=compute.tf32 * share,
            vector=compute.vector * share,
        ),
        traffic=replace(traffic, memory=traffic.memory * share, cache=traffic.cache * share),
        tiles=replace(
            tiles,
            count=count,
            code_bytes=round(tiles.code_bytes * share),
            operation_code_bytes=round(tiles.operation_code_bytes * share),
        ),
    )
