"""The time of one pass of a convolution on a card.

Kernels multiply blocks of channels, which are padded with zeros: 8 channels cost as much as a whole block. Channels
must be contiguous, so images in the channels-first layout are reordered first.
"""

from __future__ import annotations

import math

from pilotage.prediction.devices.model import Convolutions, DeviceModel
from pilotage.prediction.timing.card_rates import HALF, product_rate, traffic_seconds
from pilotage.prediction.timing.cost import Arithmetic
from pilotage.prediction.trace.work import Convolution

__all__ = ["pass_seconds"]

_FEW = 3
"""Images with fewer channels have special kernels with less padding."""


def pass_seconds(part: Convolution, kind: str, model: DeviceModel, arithmetic: Arithmetic) -> float:
    """The time of one pass: its product or its memory traffic, and converting images to the layout of the kernels."""
    moving = traffic_seconds(part.moved, model)
    if part.groups > 1 and part.channels_in < 4:
        # Depthwise: each channel is separate, so no matrices are multiplied.
        return moving if part.channels_last else max(moving, _elements(part) * _depthwise(part, model.convolutions))
    multiplying = _multiplying(part, kind, model, arithmetic)
    seconds = max(multiplying, moving)
    if part.channels_last:
        return seconds
    if part.is_plain and part.aligned:
        return seconds + 0.3 * min(multiplying, moving)
    return seconds + sum(_reordering(pixels, channels, model) for pixels, channels in part.images)


def _multiplying(part: Convolution, kind: str, model: DeviceModel, arithmetic: Arithmetic) -> float:
    sizes, half = model.convolutions, kind in HALF
    columns = sizes.columns * math.ceil(part.channels_out / sizes.columns)
    flops = 2 * part.pixels * columns * _depth(part, sizes, half) * part.taps * part.groups
    efficiency = model.compute.convolution_efficiency
    is_narrow = part.channels_out < 2 * sizes.columns
    if half:
        efficiency *= sizes.half_efficiency
        efficiency *= sizes.half_narrow_efficiency if is_narrow else 1.0
    elif is_narrow:
        efficiency *= sizes.narrow_efficiency
    if part.channels_out % (8 if half else 4) and part.channels_out < sizes.columns:
        efficiency *= model.compute.misaligned_efficiency
    rate = product_rate(model, kind, arithmetic.convolutions_in_tf32) * efficiency
    return flops / rate * _slower(part.way, sizes, half)


def _depth(part: Convolution, sizes: Convolutions, half: bool) -> int:
    """The number of input channels after padding."""
    channels, block = part.channels_in, sizes.depth if half else sizes.depth // 4
    if channels < _FEW:
        return block // 2 if half else block
    if not half:
        return block * math.ceil(channels / block) + block
    if part.way == "weight" and channels < block // 4:
        return block // 2
    return block * math.ceil(channels / block)


def _slower(way: str, sizes: Convolutions, half: bool) -> float:
    match way:
        case "input":
            return sizes.half_input_pass if half else sizes.input_pass
        case "weight":
            return sizes.half_weight_pass if half else sizes.weight_pass
        case _:
            return 1.0


def _reordering(pixels: int, channels: int, model: DeviceModel) -> float:
    """The time to convert an image to the layout of the kernels; with one channel the layouts are the same."""
    if channels < 2 or not model.convolutions.reordering_seconds:
        return 0.0
    each = model.convolutions.reordering_seconds * channels + model.convolutions.reordering_pixel_seconds
    return model.overheads.operation_seconds + pixels * each


def _elements(part: Convolution) -> int:
    return sum(pixels * channels for pixels, channels in part.images)


def _depthwise(part: Convolution, sizes: Convolutions) -> float:
    return sizes.depthwise_seconds * (1.0 if part.way == "forward" else 1.8)
