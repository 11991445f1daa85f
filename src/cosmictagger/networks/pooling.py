"""Halving and doubling pictures.

On a card both are operations of our own: torch's maximum keeps a number of eight bytes for each pixel until the way back,
and its interpolation adds gradients up in an order that changes from run to run.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.library import custom_op

from cosmictagger.networks import cards


def halve(x: Tensor) -> Tensor:
    """The largest of each two by two pixels."""
    return _halved(x) if cards.serve(x) else F.max_pool2d(x, 2)


def double(x: Tensor) -> Tensor:
    """Twice the size by bilinear interpolation."""
    if cards.serve(x):
        return _doubled(x)
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


@custom_op("cosmictagger::halve", mutates_args=())
def _halved(x: Tensor) -> Tensor:
    return cards.resizing().halve(x)  # type: ignore[no-any-return]


@custom_op("cosmictagger::halve_backward", mutates_args=())
def _halved_backward(gradient: Tensor, x: Tensor) -> Tensor:
    return cards.resizing().halve_backward(gradient, x)  # type: ignore[no-any-return]


@custom_op("cosmictagger::double", mutates_args=())
def _doubled(x: Tensor) -> Tensor:
    return cards.resizing().double(x)  # type: ignore[no-any-return]


@custom_op("cosmictagger::double_backward", mutates_args=())
def _doubled_backward(gradient: Tensor) -> Tensor:
    return cards.resizing().double_backward(gradient)  # type: ignore[no-any-return]


def _resized(x: Tensor, numerator: int, denominator: int) -> Tensor:
    count, channels, height, width = x.shape
    size = (count, channels, height * numerator // denominator, width * numerator // denominator)
    return torch.empty(size, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)


# A program is captured by way of these four: what they are asked for will be needed soon.
@_halved.register_fake
def _halved_without_values(x: Tensor) -> Tensor:
    if cards.serve(x):
        cards.resizing().prepare_halving(x)
    return _resized(x, 1, 2)


@_halved_backward.register_fake
def _halved_backward_without_values(gradient: Tensor, x: Tensor) -> Tensor:
    if cards.serve(x):
        cards.resizing().prepare_halving_backward(x)
    return torch.empty_like(x)


@_doubled.register_fake
def _doubled_without_values(x: Tensor) -> Tensor:
    if cards.serve(x):
        cards.resizing().prepare_doubling(x)
    return _resized(x, 2, 1)


@_doubled_backward.register_fake
def _doubled_backward_without_values(gradient: Tensor) -> Tensor:
    if cards.serve(gradient):
        cards.resizing().prepare_doubling_backward(gradient)
    return _resized(gradient, 1, 2)


_halved.register_autograd(
    lambda ctx, gradient: _halved_backward(gradient, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
_doubled.register_autograd(lambda ctx, gradient: _doubled_backward(gradient))
