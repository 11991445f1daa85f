# ruff: noqa: N803 -- Triton's constants are written in capitals and its branches are decided by the compiler
"""Triton kernels that halve and double images with channels last."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from cosmictagger.networks.kernel_compilation import kernel_compiler

TILE = 2048
"""Values per tile of a program."""


@triton.jit
def _place(height, width, channels, PIXELS: tl.constexpr, WIDTH: tl.constexpr):
    """The tile of one program: image, row, columns and channels."""
    line = tl.program_id(0)
    image, row = line // height, line % height
    column = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    c = tl.arange(0, WIDTH)
    return image.to(tl.int64), row, column, c, (column < width)[:, None] & (c < channels)[None, :]


@triton.jit
def _at(image, row, column, c, height, width, channels):
    return ((image * height + row) * width) * channels + column[:, None] * channels + c[None, :]


@triton.jit(do_not_specialize=["height", "width", "eighths"])
def _halve_kernel(x, y, height, width, eighths, PIXELS: tl.constexpr, WIDTH: tl.constexpr):
    channels = eighths * 8
    n, row, column, c, mask = _place(height, width, channels, PIXELS, WIDTH)
    tall, wide = 2 * height, 2 * width
    first = tl.load(x + _at(n, 2 * row, 2 * column, c, tall, wide, channels), mask=mask, other=0.0)
    second = tl.load(x + _at(n, 2 * row, 2 * column + 1, c, tall, wide, channels), mask=mask, other=0.0)
    third = tl.load(x + _at(n, 2 * row + 1, 2 * column, c, tall, wide, channels), mask=mask, other=0.0)
    fourth = tl.load(x + _at(n, 2 * row + 1, 2 * column + 1, c, tall, wide, channels), mask=mask, other=0.0)
    best = tl.maximum(tl.maximum(first, second), tl.maximum(third, fourth))
    tl.store(y + _at(n, row, column, c, height, width, channels), best, mask=mask)


@triton.jit(do_not_specialize=["height", "width", "eighths"])
def _halve_backward_kernel(gradient, x, into_x, height, width, eighths, PIXELS: tl.constexpr, WIDTH: tl.constexpr):
    channels = eighths * 8
    n, row, column, c, mask = _place(height, width, channels, PIXELS, WIDTH)
    tall, wide = 2 * height, 2 * width
    g = tl.load(gradient + _at(n, row, column, c, height, width, channels), mask=mask, other=0.0)
    at_first = _at(n, 2 * row, 2 * column, c, tall, wide, channels)
    at_second = _at(n, 2 * row, 2 * column + 1, c, tall, wide, channels)
    at_third = _at(n, 2 * row + 1, 2 * column, c, tall, wide, channels)
    at_fourth = _at(n, 2 * row + 1, 2 * column + 1, c, tall, wide, channels)
    first = tl.load(x + at_first, mask=mask, other=0.0)
    second = tl.load(x + at_second, mask=mask, other=0.0)
    third = tl.load(x + at_third, mask=mask, other=0.0)
    fourth = tl.load(x + at_fourth, mask=mask, other=0.0)
    best = tl.maximum(tl.maximum(first, second), tl.maximum(third, fourth))
    # The first of equal values gets the whole gradient.
    is_first = first == best
    is_second = (second == best) & (is_first == 0)
    is_third = (third == best) & (is_first == 0) & (is_second == 0)
    is_fourth = (is_first == 0) & (is_second == 0) & (is_third == 0)
    nothing = tl.zeros_like(g)
    tl.store(into_x + at_first, tl.where(is_first, g, nothing), mask=mask)
    tl.store(into_x + at_second, tl.where(is_second, g, nothing), mask=mask)
    tl.store(into_x + at_third, tl.where(is_third, g, nothing), mask=mask)
    tl.store(into_x + at_fourth, tl.where(is_fourth, g, nothing), mask=mask)


@triton.jit(do_not_specialize=["height", "width", "eighths"])
def _double_kernel(x, y, height, width, eighths, PIXELS: tl.constexpr, WIDTH: tl.constexpr):
    """Bilinear: 3/4 of the nearest source pixel and 1/4 of the neighbour, along each axis."""
    channels = eighths * 8
    n, row, column, c, mask = _place(2 * height, 2 * width, channels, PIXELS, WIDTH)
    near_row, near = row // 2, column // 2
    far_row = tl.minimum(tl.maximum(near_row + 2 * (row % 2) - 1, 0), height - 1)
    far = tl.minimum(tl.maximum(near + 2 * (column % 2) - 1, 0), width - 1)
    a = tl.load(x + _at(n, near_row, near, c, height, width, channels), mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x + _at(n, near_row, far, c, height, width, channels), mask=mask, other=0.0).to(tl.float32)
    d = tl.load(x + _at(n, far_row, near, c, height, width, channels), mask=mask, other=0.0).to(tl.float32)
    e = tl.load(x + _at(n, far_row, far, c, height, width, channels), mask=mask, other=0.0).to(tl.float32)
    value = 0.75 * (0.75 * a + 0.25 * b) + 0.25 * (0.75 * d + 0.25 * e)
    tl.store(y + _at(n, row, column, c, 2 * height, 2 * width, channels), value.to(y.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["height", "width", "eighths"])
def _double_backward_kernel(gradient, into_x, height, width, eighths, PIXELS: tl.constexpr, WIDTH: tl.constexpr):
    """The transpose: 4 x 4 pixels with weights 1/4, 3/4, 3/4, 1/4, clamped at the edges."""
    channels = eighths * 8
    n, row, column, c, mask = _place(height, width, channels, PIXELS, WIDTH)
    tall, wide = 2 * height, 2 * width
    total = tl.zeros([PIXELS, WIDTH], dtype=tl.float32)
    for i in tl.static_range(4):
        from_row = tl.minimum(tl.maximum(2 * row + i - 1, 0), tall - 1)
        for j in tl.static_range(4):
            from_column = tl.minimum(tl.maximum(2 * column + j - 1, 0), wide - 1)
            share = (0.25 + 0.25 * i * (3 - i)) * (0.25 + 0.25 * j * (3 - j))
            at = _at(n, from_row, from_column, c, tall, wide, channels)
            total += share * tl.load(gradient + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(into_x + _at(n, row, column, c, height, width, channels), total.to(into_x.dtype.element_ty), mask=mask)


def prepare_halving(x: Tensor) -> None:
    """Start compiling the kernel of ``halve`` for a tensor like this one."""
    kernel_compiler().submit(x.device, _halve_kernel, x.dtype, x.dtype, 1, 1, 1, **_tile(x.shape[1]))


def prepare_halving_backward(x: Tensor) -> None:
    """Start compiling the kernel of ``halve_backward`` for a tensor like this one."""
    kernel_compiler().submit(x.device, _halve_backward_kernel, *(x.dtype,) * 3, 1, 1, 1, **_tile(x.shape[1]))


def prepare_doubling(x: Tensor) -> None:
    """Start compiling the kernel of ``double`` for a tensor like this one."""
    kernel_compiler().submit(x.device, _double_kernel, x.dtype, x.dtype, 1, 1, 1, **_tile(x.shape[1]))


def prepare_doubling_backward(gradient: Tensor) -> None:
    """Start compiling the kernel of ``double_backward`` for a tensor like this one."""
    kernel_compiler().submit(
        gradient.device, _double_backward_kernel, gradient.dtype, gradient.dtype, 1, 1, 1, **_tile(gradient.shape[1])
    )


def halve(x: Tensor) -> Tensor:
    """Max-pool 2 x 2 pixels."""
    kernel_compiler().wait()
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    y = _empty(x, height // 2, width // 2)
    _halve_kernel[_grid(y)](x, y, height // 2, width // 2, channels // 8, **_tile(channels))
    return y


def halve_backward(gradient: Tensor, x: Tensor) -> Tensor:
    """The gradient of ``halve``."""
    kernel_compiler().wait()
    gradient, x = (each.contiguous(memory_format=torch.channels_last) for each in (gradient, x))
    into_x = torch.empty_like(x)
    height, width = gradient.shape[2:]
    _halve_backward_kernel[_grid(gradient)](gradient, x, into_x, height, width, x.shape[1] // 8, **_tile(x.shape[1]))
    return into_x


def double(x: Tensor) -> Tensor:
    """Double the size by bilinear interpolation."""
    kernel_compiler().wait()
    x = x.contiguous(memory_format=torch.channels_last)
    _, channels, height, width = x.shape
    y = _empty(x, 2 * height, 2 * width)
    _double_kernel[_grid(y)](x, y, height, width, channels // 8, **_tile(channels))
    return y


def double_backward(gradient: Tensor) -> Tensor:
    """The gradient of ``double``."""
    kernel_compiler().wait()
    gradient = gradient.contiguous(memory_format=torch.channels_last)
    _, channels, tall, wide = gradient.shape
    into_x = _empty(gradient, tall // 2, wide // 2)
    _double_backward_kernel[_grid(into_x)](gradient, into_x, tall // 2, wide // 2, channels // 8, **_tile(channels))
    return into_x


def _empty(like: Tensor, height: int, width: int) -> Tensor:
    shape = (*like.shape[:2], height, width)
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _tile(channels: int) -> dict[str, Any]:
    width = triton.next_power_of_2(channels)
    return {"PIXELS": max(TILE // width, 1), "WIDTH": width, "num_warps": 4}


def _grid(swept: Tensor) -> tuple[int, int]:
    """One program per part of each line; only the first dimension may be large."""
    images, channels, height, width = swept.shape
    return images * height, triton.cdiv(width, _tile(channels)["PIXELS"])
