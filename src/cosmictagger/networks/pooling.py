"""Halving and doubling the size of images.

On a card both are custom operations: torch's max pooling saves eight bytes per pixel for backward, and its
interpolation sums gradients in an order that changes from run to run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.library import custom_op

from cosmictagger.networks import triton_support


def halve(x: Tensor) -> Tensor:
    """Max-pool 2 x 2 pixels."""
    halved: Tensor = _halved(x) if triton_support.supports(x) else F.max_pool2d(x, 2)
    return halved


def double(x: Tensor) -> Tensor:
    """Double the size by bilinear interpolation."""
    if triton_support.supports(x):
        doubled: Tensor = _doubled(x)
        return doubled
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


@custom_op("cosmictagger::halve", mutates_args=())
def _halved(x: Tensor) -> Tensor:
    return triton_support.resizing_kernels().halve(x)  # type: ignore[no-any-return]


@custom_op("cosmictagger::halve_backward", mutates_args=())
def _halved_backward(gradient: Tensor, x: Tensor) -> Tensor:
    return triton_support.resizing_kernels().halve_backward(gradient, x)  # type: ignore[no-any-return]


@custom_op("cosmictagger::double", mutates_args=())
def _doubled(x: Tensor) -> Tensor:
    return triton_support.resizing_kernels().double(x)  # type: ignore[no-any-return]


@custom_op("cosmictagger::double_backward", mutates_args=())
def _doubled_backward(gradient: Tensor) -> Tensor:
    return triton_support.resizing_kernels().double_backward(gradient)  # type: ignore[no-any-return]


def _register_fake(operation: Any, prepare: Callable[[Any, Tensor], None], result: Callable[[Tensor], Tensor]) -> None:
    """Register an operation's result without values, for capture; also start compiling its kernel."""

    def without_values(*tensors: Tensor) -> Tensor:
        x = tensors[-1]
        if triton_support.supports(x):
            prepare(triton_support.resizing_kernels(), x)
        return result(x)

    operation.register_fake(without_values)


def _resized(x: Tensor, *, times: int = 1, parts: int = 1) -> Tensor:
    size = (*x.shape[:2], *(side * times // parts for side in x.shape[2:]))
    return torch.empty(size, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)


_register_fake(_halved, lambda kernels, x: kernels.prepare_halving(x), partial(_resized, parts=2))
_register_fake(_halved_backward, lambda kernels, x: kernels.prepare_halving_backward(x), _resized)
_register_fake(_doubled, lambda kernels, x: kernels.prepare_doubling(x), partial(_resized, times=2))
_register_fake(_doubled_backward, lambda kernels, x: kernels.prepare_doubling_backward(x), partial(_resized, parts=2))

_halved.register_autograd(
    lambda ctx, gradient: _halved_backward(gradient, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
_doubled.register_autograd(lambda ctx, gradient: _doubled_backward(gradient))
