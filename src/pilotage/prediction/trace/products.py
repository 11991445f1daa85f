"""The work of matrix products, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pilotage.prediction.trace.tensor_values import bytes_of, type_name
from pilotage.prediction.trace.work import Convolution, Product, Work, WorkKind
from pilotage.torch_private import OpOverload, schema_of

__all__ = ["attention_work", "convolution_backward_work", "convolution_work", "products_work"]


def products_work(name: str, given: list[Tensor], made: list[Tensor], read: int, written: int) -> Work:
    """The work of a matrix product, or of a batch of them."""
    matrices = [each for each in given if each.dim() >= 2]
    a, b = matrices[-2:] if len(matrices) >= 2 else (given[0], given[-1])
    result = made[0]
    k = b.shape[-1] if name == "linear" else a.shape[-1]
    n = result.shape[-1]
    rows = result.numel() // max(1, n)
    batch = result.shape[0] if result.dim() == 3 and name != "linear" else 1
    part = Product(batch, rows // max(1, batch), n, k)
    kind, size = type_name(a.dtype), a.element_size()
    aligned = all(max(each.stride()[-2:], default=1) * size % 16 == 0 for each in (a, b, result))
    return Work(
        kind=WorkKind.PRODUCT,
        type=kind,
        flops=part.flops,
        read=read,
        written=written,
        parts=(part,),
        aligned=aligned,
    )


def _pass(x: Tensor, w: Tensor, y: Tensor, groups: int, transposed: bool, way: str) -> Convolution:
    """One pass; a transposed convolution is the backward pass of an ordinary one."""
    taps = math.prod(w.shape[2:])
    into, out = (w.shape[0] // groups, w.shape[1]) if transposed else (w.shape[1], w.shape[0] // groups)
    wide = x if transposed else y
    pixels = wide.shape[0] * math.prod(wide.shape[2:])
    images = tuple((each.shape[0] * math.prod(each.shape[2:]), each.shape[1]) for each in (x, y))
    return Convolution(
        pixels=pixels,
        channels_in=into,
        channels_out=out,
        taps=taps,
        groups=groups,
        way=way,
        moved=bytes_of(x) + bytes_of(y),
        channels_last=x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last),
        is_plain=taps == 1 and x.shape[2:] == y.shape[2:],
        images=images,
        aligned=all(math.prod(each.shape[2:]) * each.element_size() % 16 == 0 for each in (x, y)),
        weight_bytes=bytes_of(w),
    )


def convolution_work(given: list[Tensor], y: Tensor, args: Sequence[Any], read: int, written: int) -> Work:
    """The work of a convolution's forward pass."""
    x, w = given[0], given[1]
    transposed = bool(args[6]) if len(args) > 6 else False
    groups = int(args[8]) if len(args) > 8 and isinstance(args[8], int) else 1
    part = _pass(x, w, y, groups, transposed, "forward")
    kind = type_name(x.dtype)
    return Work(kind=WorkKind.CONVOLUTION, type=kind, flops=part.flops, read=read, written=written, parts=(part,))


def convolution_backward_work(args: Sequence[Any], made: list[Tensor], read: int, written: int) -> Work:
    """The work of a convolution's backward passes: to its input, to its weight, or both."""
    y, x, w = args[:3]
    transposed, groups, mask = bool(args[7]), int(args[9]), args[10]
    ways = [way for way, wanted in zip(("input", "weight"), mask, strict=False) if wanted]
    parts = tuple(_pass(x, w, y, groups, transposed, way) for way in ways)
    kind, flops = type_name(x.dtype), sum(part.flops for part in parts)
    return Work(kind=WorkKind.CONVOLUTION, type=kind, flops=flops, read=read, written=written, parts=parts)


def attention_work(
    target: OpOverload,
    name: str,
    given: list[Tensor],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    read: int,
    written: int,
) -> Work:
    """The work of attention, forward or backward."""
    backward = "backward" in name
    q, k = (given[1], given[2]) if backward else (given[0], given[1])
    v = given[3] if backward else given[2]
    batch, (length, width), others = math.prod(q.shape[:-2]), q.shape[-2:], k.shape[-2]
    causal = _argument(target, args, kwargs, "is_causal") is True
    share = 0.5 if causal and "math" not in name else 1.0
    flops = int(2 * batch * length * others * (width + v.shape[-1]) * share * (2.5 if backward else 1))
    return Work(
        kind=WorkKind.ATTENTION,
        type=type_name(q.dtype),
        flops=flops,
        read=read,
        written=written,
        elements=length,
        backward=backward,
        causal=causal,
    )


def _argument(target: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], name: str) -> Any:
    """The value that an operation gets for one of its parameters; None if it gets none."""
    names = [argument.name for argument in schema_of(target).arguments]
    place = names.index(name) if name in names else len(args)
    return args[place] if place < len(args) else kwargs.get(name)
