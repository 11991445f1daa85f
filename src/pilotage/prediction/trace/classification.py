"""The work of an operation of a captured graph."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from pilotage.prediction.trace.products import (
    attention_work,
    convolution_backward_work,
    convolution_work,
    products_work,
)
from pilotage.prediction.trace.tensor_values import bytes_of, tensors_in, type_name
from pilotage.prediction.trace.work import Work, WorkKind
from pilotage.torch_private import OpOverload, schema_of

__all__ = ["name_of", "work_of"]

_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "addbmm", "linear", "addmm_", "_scaled_mm"}
_NORMALIZATIONS = (
    "native_batch_norm",
    "_native_batch_norm_legit",
    "cudnn_batch_norm",
    "_batch_norm_",
    "native_layer_norm",
    "native_group_norm",
    "_fused_rms_norm",
    "normalize_planes",
)
_SOFTMAXES = ("_softmax", "_log_softmax", "_safe_softmax")
_RANDOM = {
    "native_dropout",
    "bernoulli_",
    "bernoulli",
    "uniform_",
    "normal_",
    "rand",
    "randn",
    "rand_like",
    "randn_like",
}
_RESIZING = ("max_pool", "avg_pool", "adaptive_", "_adaptive_", "upsample", "_upsample")
_REDUCTIONS = {
    "sum", "mean", "amax", "amin", "var", "var_mean", "std", "std_mean", "argmax", "argmin", "max", "min", "any",
    "all", "norm", "linalg_vector_norm", "prod", "logsumexp", "cumsum", "sort", "topk", "nansum", "_foreach_norm",
}  # fmt: skip
_GATHERS = {
    "embedding", "embedding_dense_backward", "index", "index_put", "index_put_", "_unsafe_index", "gather", "scatter",
    "scatter_", "scatter_add", "scatter_add_", "index_select", "index_add", "index_add_", "_embedding_bag",
    "_unsafe_index_put", "nonzero", "masked_select", "select_scatter", "slice_scatter",
}  # fmt: skip
_SCATTERS = {
    "embedding_dense_backward", "index_put", "index_put_", "scatter", "scatter_", "scatter_add", "scatter_add_",
    "index_add", "index_add_", "_unsafe_index_put",
}  # fmt: skip
_FREE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias", "_unsafe_view"}
_FILLS = {"zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "zero_", "fill_", "new_zeros", "new_ones",
          "new_full", "arange", "scalar_tensor", "_foreach_zero_"}  # fmt: skip
_COPIES = {"clone", "_to_copy", "copy_", "copy", "contiguous", "cat", "stack", "constant_pad_nd"}


def name_of(target: Any) -> str:
    """The name of an operation without its overload: ``aten.convolution``."""
    if not isinstance(target, OpOverload):
        return getattr(target, "__name__", str(target))
    return schema_of(target).name.replace("::", ".")


def work_of(target: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Work:
    """The work of an operation on tensors that need not have values."""
    if target is operator.getitem or not isinstance(target, OpOverload):
        return Work(kind=WorkKind.FREE)
    namespace, _, name = schema_of(target).name.partition("::")
    if namespace == "prim":
        return Work(kind=WorkKind.FREE)
    work = _work(target, name, args, kwargs, result)
    # The number of kernels that a custom operator starts is unknown unless the operator declares it.
    is_own = namespace not in ("aten", "prims") and work.kind is not WorkKind.FREE
    return replace(work, kernels=getattr(target, "kernels", 1)) if is_own else work


def _work(target: OpOverload, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Work:
    given, made = tensors_in([*args, *kwargs.values()]), tensors_in(result)
    read, written = sum(map(bytes_of, given)), sum(map(bytes_of, made))
    if _is_free(target, name):
        return Work(kind=WorkKind.FREE)
    if schema_of(target).is_mutable:
        written = max(written, _written_bytes(target, args, kwargs))
    if name in _PRODUCTS:
        return products_work(name, given, made, read, written)
    if name in ("convolution", "_convolution", "cudnn_convolution"):
        return convolution_work(given, made[0], args, read, written)
    if name == "convolution_backward":
        return convolution_backward_work(args, made, read, written)
    if "scaled_dot_product" in name:
        return attention_work(target, name, given, args, kwargs, read, written)
    if name in _FILLS:
        return Work(kind=WorkKind.ELEMENTWISE, read=0, written=written, tensors=max(1, len(given)))
    if name in _COPIES:
        return _copy(name, given, made, read, written)
    elements = max((each.numel() for each in (*given, *made)), default=1)
    if name.startswith(_NORMALIZATIONS):
        return _normalization(name, given, args, elements, read, written)
    if name.startswith(_SOFTMAXES):
        return Work(kind=WorkKind.REDUCTION, flops=5 * elements, read=read, written=written)
    if name in _RANDOM:
        return Work(kind=WorkKind.RANDOM, flops=10 * elements, read=read, written=written)
    if name.startswith(_RESIZING) or "pool2d" in name or "pool3d" in name:
        # The backward pass of max pooling looks for the places of all maxima.
        searches = "max_pool" in name and name.endswith("backward")
        return Work(
            kind=WorkKind.RESIZING,
            flops=4 * elements,
            read=read,
            written=written,
            elements=elements,
            backward=searches,
        )
    if name in _GATHERS:
        # Selecting a few rows does not read the whole table.
        read = min(read, 2 * written) if name in ("embedding", "index", "gather", "index_select") else read
        return Work(kind=WorkKind.GATHER, flops=0, read=read, written=written, backward=name in _SCATTERS)
    if name in _REDUCTIONS:
        return _reduction(args, given, made, read, written)
    if name.startswith("nll_loss2d"):
        return _image_loss(given, read, written)
    if name.startswith(("_foreach_", "_fused_")):
        return Work(
            kind=WorkKind.ELEMENTWISE,
            flops=sum(each.numel() for each in given),
            read=read,
            written=written,
            tensors=_list_length(args),
            elements=sum(map(Tensor.numel, tensors_in(args[0]))) if args else 0,
            mixed=len({each.dtype for each in given}) > 1,
        )
    types = {each.dtype for each in given if each.is_floating_point()}
    return Work(
        kind=WorkKind.ELEMENTWISE,
        flops=elements,
        read=read,
        written=written,
        elements=elements,
        mixed=len(types) > 1,
    )


def _is_free(target: OpOverload, name: str) -> bool:
    return name in _FREE or bool(target.is_view) or name in ("split", "split_with_sizes", "unbind", "chunk")


def _written_bytes(target: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    total = 0
    for position, argument in enumerate(schema_of(target).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            total += sum(map(bytes_of, tensors_in(value)))
    return total


def _list_length(args: Sequence[Any]) -> int:
    return max((len(each) for each in args if isinstance(each, list | tuple)), default=1)


_COLUMNS, _FEW_COLUMNS = 1.4, 2.2
"""How often sums over columns read their operand, compared with sums over rows, and whether processors share a sum."""

_LONG = 1024
"""Processors share a sum of more numbers than this, if there are few sums."""

_FEW_SUMS, _FEW_SUMS_OF_COLUMNS = 132, 8192
"""The number of sums that keeps all processors of a card busy; for sums of columns, each processor computes many."""


def _reduction(args: Sequence[Any], given: list[Tensor], made: list[Tensor], read: int, written: int) -> Work:
    elements = max((each.numel() for each in (*given, *made)), default=1)
    sums, columns = max(1, made[0].numel() if made else 1), _sums_columns(args, given)
    split = elements // sums >= _LONG and sums < (_FEW_SUMS_OF_COLUMNS if columns else _FEW_SUMS)
    return Work(
        kind=WorkKind.REDUCTION,
        flops=elements,
        read=read,
        written=written,
        tensors=max(1, len(given)),
        split=split and len(given) == 1,
        passes=1.0 if not columns else _FEW_COLUMNS if split else _COLUMNS,
    )


def _image_loss(given: list[Tensor], read: int, written: int) -> Work:
    """The loss over the pixels of images: torch gives each image one block of threads for every 131,072 pixels."""
    scores = max(given, key=Tensor.numel)
    pixels = math.prod(scores.shape[2:])
    blocks = max(1, pixels // 1024 // 128)
    return Work(
        kind=WorkKind.REDUCTION,
        flops=scores.numel(),
        read=read,
        written=written,
        elements=scores.shape[0] * pixels,
        lanes=scores.shape[0] * blocks,
    )


def _sums_columns(args: Sequence[Any], given: list[Tensor]) -> bool:
    """Whether a reduction keeps the last dimension."""
    dims = args[1] if len(args) > 1 else None
    chosen = [dims] if isinstance(dims, int) else dims
    if not isinstance(chosen, list | tuple) or not chosen or not given:
        return False
    last = given[0].dim() - 1
    return all(isinstance(each, int) and each % max(1, given[0].dim()) != last for each in chosen)


def _normalization(name: str, given: list[Tensor], args: Sequence[Any], elements: int, read: int, written: int) -> Work:
    """A batch or group normalisation sums over all of a channel or group at once."""
    lanes = kernels = 0
    if "batch_norm" in name:
        lanes = max((each.shape[1] for each in given if each.dim() > 2), default=0)
    elif "group_norm" in name:
        numbers = [each for each in args if isinstance(each, int) and not isinstance(each, bool)]
        lanes = numbers[0] * numbers[3] if len(numbers) > 3 else 0
        kernels = 3
    backward = "backward" in name
    rows = 0
    if "layer_norm" in name or "rms_norm" in name:
        inputs = max(given, key=Tensor.numel)
        rows = inputs.numel() // max(1, inputs.shape[-1] if inputs.dim() else 1)
    return Work(
        kind=WorkKind.NORMALIZATION,
        flops=(11 if backward else 8) * elements,
        read=read,
        written=written,
        type=type_name(given[0].dtype),
        kernels=kernels,
        lanes=lanes,
        elements=elements,
        backward=backward,
        rows=rows,
    )


def _copy(name: str, given: list[Tensor], made: list[Tensor], read: int, written: int) -> Work:
    places = {each.device.type for each in (*given, *made)}
    if len(places) > 1:
        return Work(kind=WorkKind.TRANSFER, read=read, written=written)
    if name == "copy_" and len(given) > 1:
        read = bytes_of(given[1])
        written = bytes_of(given[0])
    target = given[0] if name == "copy_" else made[0] if made else None
    source = given[-1] if given else None
    elements = max((each.numel() for each in made), default=1)
    if name in ("cat", "stack"):
        strided = any(not each.is_contiguous() for each in given)
        return Work(
            kind=WorkKind.ELEMENTWISE,
            read=read,
            written=written,
            tensors=max(1, len(given)),
            elements=elements,
            strided=strided,
        )
    turned, strided = (False, False) if source is None or target is None else _order(source, target)
    return Work(
        kind=WorkKind.TRANSPOSITION if turned else WorkKind.ELEMENTWISE,
        read=read,
        written=written,
        tensors=max(1, len(given)),
        elements=elements,
        strided=strided,
    )


def _order(source: Tensor, target: Tensor) -> tuple[bool, bool]:
    """Whether the innermost dimensions of two tensors differ, and whether only the order of whole rows differs."""
    if source.shape != target.shape or source.dim() < 2:
        return False, False
    turned = source.stride(-1) != target.stride(-1) and min(source.shape[-2:]) > 1
    # Dimensions of size 1 have any stride.
    dense = source.is_contiguous() and target.is_contiguous()
    return turned, not turned and not dense and source.stride() != target.stride()
