"""Reductions over instances."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from horovod.world import instances, peers

__all__ = ["Average", "Compression", "Max", "Min", "Product", "Reduction", "Sum", "reduced"]


class Reduction(Enum):
    """How the values of instances are combined."""

    AVERAGE = "Average"
    SUM = "Sum"
    MIN = "Min"
    MAX = "Max"
    PRODUCT = "Product"

    @classmethod
    def of(cls, average: bool | None, op: Reduction | None) -> Reduction:
        """The reduction that Horovod's two arguments for it choose."""
        if average is not None and op is not None:
            raise ValueError("The op parameter supersedes average. Please provide only one of them.")
        if op is None:
            return cls.SUM if average is False else cls.AVERAGE
        if not isinstance(op, cls):
            raise ValueError(f"op is {op!r}. Choose hvd.Average, hvd.Sum, hvd.Min, hvd.Max or hvd.Product.")
        return op


Average = Reduction.AVERAGE
Sum = Reduction.SUM
Min = Reduction.MIN
Max = Reduction.MAX
Product = Reduction.PRODUCT

_OPERATIONS = {
    Average: dist.ReduceOp.SUM,
    Sum: dist.ReduceOp.SUM,
    Min: dist.ReduceOp.MIN,
    Max: dist.ReduceOp.MAX,
    Product: dist.ReduceOp.PRODUCT,
}


class Compression(Enum):
    """How values are sent: in their own type, or floating-point ones as float16."""

    none = "none"
    fp16 = "fp16"


def reduced(
    tensor: Tensor, reduction: Reduction, compression: Compression, prescale_factor: float, postscale_factor: float
) -> Tensor:
    """The tensors of all instances, combined; average and sum pass gradients."""
    if not isinstance(compression, Compression):
        raise ValueError(f"compression is {compression!r}. Choose hvd.Compression.none or hvd.Compression.fp16.")
    result: Tensor = _Reduced.apply(tensor, reduction, compression, prescale_factor, postscale_factor)  # type: ignore[no-untyped-call]
    return result


class _Reduced(torch.autograd.Function):
    """Combines the tensors of all instances; the gradients of a sum are summed the same way."""

    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, reduction: Reduction, compression: Compression, before: float, after: float
    ) -> Tensor:
        ctx.settings = reduction, compression, before, after
        return _combined(tensor, reduction, compression, before, after)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        reduction, compression, before, after = ctx.settings
        if reduction not in (Average, Sum):
            raise NotImplementedError(f"hvd.{reduction.value} passes no gradients; use hvd.Average or hvd.Sum.")
        return _combined(gradient, reduction, compression, before, after), None, None, None, None


def _combined(tensor: Tensor, reduction: Reduction, compression: Compression, before: float, after: float) -> Tensor:
    size = instances().world.size
    sent = tensor.detach().to("cpu", copy=True).contiguous()
    if before != 1.0:
        sent = (sent * before).to(tensor.dtype)
    if compression is Compression.fp16 and sent.is_floating_point():
        sent = sent.half()
    if size > 1:
        peers().reduce(sent, _OPERATIONS[reduction])
    result = sent.to(tensor.dtype)
    if reduction is Average and size > 1:
        result = result / size if tensor.is_floating_point() else result // size
    if after != 1.0:
        result = (result * after).to(tensor.dtype)
    return result.to(tensor.device)
