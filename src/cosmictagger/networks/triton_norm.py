# ruff: noqa: N803, SIM108 -- Triton's constants are written in capitals and its branches are decided by the compiler
"""Triton kernels: normalisation of stacked planes with channels last.

Every kernel reads each value once. A tensor is viewed as rows of channels, one row per pixel. The number of channels is
passed divided by 8: knowing that 8 divides it lets the compiler load eight values at once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from cosmictagger.networks.kernel_compilation import kernel_compiler

TILE = 4096
"""Values per tile of a program."""

PROGRAMS = 1024
"""Approximate number of programs of a reduction."""


@triton.jit(do_not_specialize=["rows", "eighths", "steps"])
def _sums_kernel(x, partial, rows, eighths, steps, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    plane, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    channels = eighths * 8
    c = tl.arange(0, WIDTH)
    inside = c < channels
    x += plane.to(tl.int64) * rows * channels
    # Sums of differences from one pixel stay precise if most of a plane has one value.
    pivot = tl.load(x + c, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    squares = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    r = tl.arange(0, ROWS)
    for step in range(steps):
        first = (part * steps + step) * ROWS
        mask = (first + r < rows)[:, None] & inside[None, :]
        at = x + first.to(tl.int64) * channels + r[:, None] * channels + c[None, :]
        value = tl.where(mask, tl.load(at, mask=mask, other=0.0).to(tl.float32) - pivot[None, :], 0.0)
        total += value
        squares += value * value
    out = partial + ((plane * parts + part) * 2) * channels + c
    tl.store(out, tl.sum(total, axis=0), mask=inside)
    tl.store(out + channels, tl.sum(squares, axis=0), mask=inside)


@triton.jit(do_not_specialize=["rows", "eighths"])
def _apply_kernel(
    x,
    y,
    residual,
    scale,
    offset,
    rows,
    eighths,
    slope,
    HAS_RESIDUAL: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    plane, part = tl.program_id(1), tl.program_id(0)
    channels = eighths * 8
    c = tl.arange(0, WIDTH)
    inside = c < channels
    r = tl.arange(0, ROWS)
    mask = (part * ROWS + r < rows)[:, None] & inside[None, :]
    base = (plane.to(tl.int64) * rows + part * ROWS) * channels
    at = r[:, None] * channels + c[None, :]
    a = tl.load(scale + plane * channels + c, mask=inside, other=0.0)
    b = tl.load(offset + plane * channels + c, mask=inside, other=0.0)
    z = tl.load(x + base + at, mask=mask, other=0.0).to(tl.float32) * a[None, :] + b[None, :]
    if HAS_RESIDUAL:
        z += tl.load(residual + base + at, mask=mask, other=0.0).to(tl.float32)
    z = tl.where(z > 0, z, z * slope)
    tl.store(y + base + at, z.to(y.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["rows", "eighths", "steps"])
def _gradient_sums_kernel(
    gradient, x, y, statistics, scale, offset, partial, rows, eighths, slope, steps,
    HAS_RESULT: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    plane, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    planes = tl.num_programs(0)
    channels = eighths * 8
    c = tl.arange(0, WIDTH)
    inside = c < channels
    base = plane.to(tl.int64) * rows * channels
    mean = tl.load(statistics + plane * channels + c, mask=inside, other=0.0)
    inverse = tl.load(statistics + (planes + plane) * channels + c, mask=inside, other=0.0)
    a = tl.load(scale + plane * channels + c, mask=inside, other=0.0)
    b = tl.load(offset + plane * channels + c, mask=inside, other=0.0)
    total = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    products = tl.zeros([ROWS, WIDTH], dtype=tl.float32)
    r = tl.arange(0, ROWS)
    for step in range(steps):
        first = (part * steps + step) * ROWS
        mask = (first + r < rows)[:, None] & inside[None, :]
        at = base + first.to(tl.int64) * channels + r[:, None] * channels + c[None, :]
        value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(gradient + at, mask=mask, other=0.0).to(tl.float32)
        if HAS_RESULT:
            z = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
        else:
            z = value * a[None, :] + b[None, :]
        g = tl.where(z > 0, g, g * slope)
        total += g
        products += g * ((value - mean[None, :]) * inverse[None, :])
    out = partial + ((plane * parts + part) * 2) * channels + c
    tl.store(out, tl.sum(total, axis=0), mask=inside)
    tl.store(out + channels, tl.sum(products, axis=0), mask=inside)


@triton.jit(do_not_specialize=["rows", "eighths"])
def _gradient_kernel(
    gradient, x, y, into_x, into_residual, statistics, scale, offset, sums, rows, eighths, slope,
    HAS_RESULT: tl.constexpr, HAS_RESIDUAL: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    plane, part, planes = tl.program_id(1), tl.program_id(0), tl.num_programs(1)
    channels = eighths * 8
    c = tl.arange(0, WIDTH)
    inside = c < channels
    mean = tl.load(statistics + plane * channels + c, mask=inside, other=0.0)
    inverse = tl.load(statistics + (planes + plane) * channels + c, mask=inside, other=0.0)
    a = tl.load(scale + plane * channels + c, mask=inside, other=0.0)
    b = tl.load(offset + plane * channels + c, mask=inside, other=0.0)
    average = tl.load(sums + plane * 2 * channels + c, mask=inside, other=0.0) / rows
    product = tl.load(sums + (plane * 2 + 1) * channels + c, mask=inside, other=0.0) / rows
    r = tl.arange(0, ROWS)
    mask = (part * ROWS + r < rows)[:, None] & inside[None, :]
    base = (plane.to(tl.int64) * rows + part * ROWS) * channels
    at = base + r[:, None] * channels + c[None, :]
    value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(gradient + at, mask=mask, other=0.0).to(tl.float32)
    if HAS_RESULT:
        z = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
    else:
        z = value * a[None, :] + b[None, :]
    g = tl.where(z > 0, g, g * slope)
    if HAS_RESIDUAL:
        tl.store(into_residual + at, g.to(into_residual.dtype.element_ty), mask=mask)
    centred = (value - mean[None, :]) * inverse[None, :]
    result = a[None, :] * (g - average[None, :] - centred * product[None, :])
    tl.store(into_x + at, result.to(into_x.dtype.element_ty), mask=mask)


def prepare(x: Tensor, residual: bool, slope: float) -> None:
    """Start compiling the kernels of ``normalize`` for a tensor like this one."""
    submit, kind, number, tile = kernel_compiler().submit, x.dtype, torch.float32, _tile(x.shape[1])
    submit(x.device, _sums_kernel, kind, number, 1, 1, 1, **tile)
    added = kind if residual else None
    submit(x.device, _apply_kernel, kind, kind, added, number, number, 1, 1, slope, residual, **tile)


def prepare_backward(x: Tensor, has_result: bool, residual: bool, slope: float) -> None:
    """Start compiling the kernels of ``normalize_backward`` for a tensor like this one."""
    submit, kind, number, tile = kernel_compiler().submit, x.dtype, torch.float32, _tile(x.shape[1])
    y, numbers = kind if has_result else None, (number,) * 4
    submit(x.device, _gradient_sums_kernel, kind, kind, y, *numbers, 1, 1, slope, 1, has_result, **tile)
    flags = has_result, residual
    submit(x.device, _gradient_kernel, kind, kind, y, kind, kind, *numbers, 1, 1, slope, *flags, **tile)


def normalize(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, planes: int, slope: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Values, means and inverse standard deviations of each plane."""
    kernel_compiler().wait()
    x = x.contiguous(memory_format=torch.channels_last)
    rows, channels, tile = _cut(x, planes)
    parts, steps = _parts(rows, planes, tile["ROWS"])
    partial = torch.empty(planes, parts, 2, channels, device=x.device)
    _sums_kernel[(planes, parts)](x, partial, rows, channels // 8, steps, **tile)
    first, second = (partial.sum(1) / rows).unbind(1)
    mean = first + x.view(planes, -1, *x.shape[1:])[:, 0, :, 0, 0]
    inverse = torch.rsqrt((second - first * first).clamp_(min=0) + eps)
    scale = weight * inverse
    y = torch.empty_like(x)
    if residual is not None:
        residual = residual.contiguous(memory_format=torch.channels_last)
    _apply_kernel[(triton.cdiv(rows, tile["ROWS"]), planes)](
        x, y, residual, scale, bias - mean * scale, rows, channels // 8, slope, residual is not None, **tile
    )
    return y, mean, inverse


def normalize_backward(
    gradient: Tensor,
    x: Tensor,
    y: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    statistics: Tensor,
    slope: float,
    residual: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, weight, bias and residual; ``y`` can be omitted without a residual."""
    kernel_compiler().wait()
    mean, inverse = statistics
    planes = len(mean)
    x = x.contiguous(memory_format=torch.channels_last)
    rows, channels, tile = _cut(x, planes)
    parts, steps = _parts(rows, planes, tile["ROWS"])
    scale = weight * inverse
    offset = bias - mean * scale
    partial = torch.empty(planes, parts, 2, channels, device=x.device)
    _gradient_sums_kernel[(planes, parts)](
        gradient, x, y, statistics, scale, offset, partial, rows, channels // 8, slope, steps, y is not None, **tile
    )
    sums = partial.sum(1)
    into_x = torch.empty_like(x)
    into_residual = torch.empty_like(x) if residual else x.new_empty(0)
    _gradient_kernel[(triton.cdiv(rows, tile["ROWS"]), planes)](
        gradient, x, y, into_x, into_residual, statistics, scale, offset, sums, rows, channels // 8, slope,
        y is not None, residual, **tile,
    )  # fmt: skip
    into_bias, into_weight = sums.sum(0)
    return into_x, into_weight.clone(), into_bias.clone(), into_residual


def _cut(x: Tensor, planes: int) -> tuple[int, int, dict[str, Any]]:
    """Rows of each plane, channels, and the shape of a tile."""
    channels = x.shape[1]
    return x.numel() // channels // planes, channels, _tile(channels)


def _tile(channels: int) -> dict[str, Any]:
    width = triton.next_power_of_2(channels)
    return {"ROWS": max(TILE // width, 1), "WIDTH": width, "num_warps": 8}


def _parts(rows: int, planes: int, tile_rows: int) -> tuple[int, int]:
    """The number of programs per plane, and of tiles per program."""
    tiles = triton.cdiv(rows, tile_rows)
    steps = triton.cdiv(tiles * planes, PROGRAMS)
    return triton.cdiv(tiles, steps), steps
