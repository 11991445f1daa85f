"""Batch normalisation of stacked planes, with the activation and the residual sum in one operation.

The three planes of an event are stacked along the batch, so that one convolution handles all of them, while each plane
has its own statistics, as if the layer were called once per plane. The operation computes
``leaky_relu((x - mean) / sqrt(variance + eps) * weight + bias + residual)`` and also returns the statistics.

A bias of the preceding convolution cancels in the normalised values, so it is not added to ``x``. It is passed as
``shift``, which changes only the reported means and has a gradient of exactly zero.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import custom_op

from cosmictagger.networks import processor_norm, triton_support


@custom_op("cosmictagger::normalize_planes", mutates_args=())
def normalize_planes(
    x: Tensor,
    shift: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    residual: Tensor | None,
    planes: int,
    slope: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalise each plane of a stack; returns values, means, variances and inverse standard deviations per plane."""
    if triton_support.supports(x):
        y, mean, inverse = triton_support.norm_kernels().normalize(x, weight, bias, residual, planes, slope, eps)
        variance = inverse.pow(-2) - eps
    elif processor_norm.serves(x):
        y, mean, variance, inverse = processor_norm.normalize(x, weight, bias, residual, planes, slope, eps)
    else:
        y, mean, inverse = _normalize(x, weight, bias, residual, planes, slope, eps)
        variance = inverse.pow(-2) - eps
    shifted = mean.clone() if shift is None else mean + shift
    return y, shifted, variance, torch.stack((mean, inverse))


def _normalize(
    x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor | None, planes: int, slope: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    y = torch.empty_like(x)
    mean = torch.empty(planes, x.shape[1], dtype=weight.dtype, device=x.device)
    inverse = torch.empty_like(mean)
    for part, whole, m, i in zip(x.chunk(planes), y.chunk(planes), mean, inverse, strict=True):
        torch.native_batch_norm(part, weight, bias, None, None, True, 0.0, eps, out=(whole, m, i))
    if residual is not None:
        y += residual
    if slope != 1.0:
        torch.nn.functional.leaky_relu_(y, slope)
    return y, mean, inverse


@custom_op("cosmictagger::normalize_planes_backward", mutates_args=())
def normalize_planes_backward(
    gradient: Tensor,
    x: Tensor,
    y: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    statistics: Tensor,
    slope: float,
    eps: float,
    residual: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of x, weight, bias and the optional residual."""
    gradient = gradient.contiguous(memory_format=_format(x))
    if triton_support.supports(x):
        kernels = triton_support.norm_kernels()
        return kernels.normalize_backward(gradient, x, y, weight, bias, statistics, slope, residual)  # type: ignore[no-any-return]
    assert y is not None
    if processor_norm.serves(x):
        return processor_norm.normalize_backward(gradient, x, y, weight, statistics, slope, residual)
    before = gradient.clone() if slope == 1.0 else torch.ops.aten.leaky_relu_backward(gradient, y, slope, True)
    parts = [
        torch.ops.aten.native_batch_norm_backward(g, part, weight, None, None, m, i, True, eps, [True, True, True])
        for g, part, m, i in zip(
            before.chunk(len(statistics[0])), x.chunk(len(statistics[0])), *statistics, strict=True
        )
    ]
    into_x, into_weight, into_bias = zip(*parts, strict=True)
    into_residual = before if residual else x.new_empty(0)
    return torch.cat(into_x), torch.stack(into_weight).sum(0), torch.stack(into_bias).sum(0), into_residual


def _format(x: Tensor) -> torch.memory_format:
    """The layout of gradients. The kernels of a card read and write channels last, whatever the layout of ``x``."""
    last = triton_support.supports(x) or x.is_contiguous(memory_format=torch.channels_last)
    return torch.channels_last if last else torch.contiguous_format


def _result(x: Tensor) -> Tensor:
    """A result without values. Its layout is a promise: a compiler allocates and reads memory by it."""
    if triton_support.supports(x):
        return torch.empty_like(x, memory_format=torch.channels_last)
    return torch.empty_like(x)


@normalize_planes.register_fake
def _fake(x, shift, weight, bias, residual, planes, slope, eps):  # type: ignore[no-untyped-def]
    if triton_support.supports(x):
        triton_support.norm_kernels().prepare(x, residual is not None, slope)
    statistics = weight.new_empty(2, planes, x.shape[1])
    return _result(x), statistics[0].clone(), statistics[1].clone(), statistics


@normalize_planes_backward.register_fake
def _fake_backward(gradient, x, y, weight, bias, statistics, slope, eps, residual):  # type: ignore[no-untyped-def]
    if triton_support.supports(x):
        triton_support.norm_kernels().prepare_backward(x, y is not None, residual, slope)
    into_residual = _result(x) if residual else x.new_empty(0)
    return _result(x), torch.empty_like(weight), torch.empty_like(bias), into_residual


def _setup(ctx, inputs, output):  # type: ignore[no-untyped-def]
    x, shift, weight, bias, residual, _, slope, eps = inputs
    y, *_, statistics = output
    # The result shows which values were negative; on a card it is recomputed to save memory.
    ctx.save_for_backward(
        x, None if residual is None and triton_support.supports(x) else y, weight, bias, statistics, shift
    )
    ctx.slope, ctx.eps, ctx.has_residual = slope, eps, residual is not None
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _backward(ctx, gradient, *_):  # type: ignore[no-untyped-def]
    x, y, weight, bias, statistics, shift = ctx.saved_tensors
    into_x, into_weight, into_bias, into_residual = normalize_planes_backward(
        gradient, x, y, weight, bias, statistics, ctx.slope, ctx.eps, ctx.has_residual
    )
    into_shift = None if shift is None else torch.zeros_like(shift)
    return into_x, into_shift, into_weight, into_bias, into_residual if ctx.has_residual else None, None, None, None


normalize_planes.register_autograd(_backward, setup_context=_setup)

# How many kernels each starts on a card, for predictions: two of ours, and those of torch for numbers of channels.
torch.ops.cosmictagger.normalize_planes.default.kernels = 17  # type: ignore[attr-defined]
torch.ops.cosmictagger.normalize_planes_backward.default.kernels = 9  # type: ignore[attr-defined]
