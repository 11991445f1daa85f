"""The work of an operation of a captured graph."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pilotage.prediction.trace.work import Convolution, Product, Work, WorkKind
from pilotage.torch_private import OpOverload, schema_of

__all__ = ["described", "name_of", "tensors_in", "work_of"]

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
    # An operator of the user's is a function of several steps, which nobody counts.
    is_own = namespace not in ("aten", "prims") and work.kind is not WorkKind.FREE
    return replace(work, kernels=_KERNELS_OF_AN_OPERATOR) if is_own else work


_KERNELS_OF_AN_OPERATOR = 6


def _work(target: OpOverload, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Work:
    given, made = tensors_in([*args, *kwargs.values()]), tensors_in(result)
    read, written = sum(map(_bytes, given)), sum(map(_bytes, made))
    if _is_free(target, name):
        return Work(kind=WorkKind.FREE)
    if schema_of(target).is_mutable:
        written = max(written, _written_bytes(target, args, kwargs))
    if name in _PRODUCTS:
        return _products(name, given, made, read, written)
    if name in ("convolution", "_convolution", "cudnn_convolution"):
        return _convolution(given, made[0], args, read, written)
    if name == "convolution_backward":
        return _convolution_backward(args, made, read, written)
    if "scaled_dot_product" in name:
        return _attention(target, name, given, args, kwargs, read, written)
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
        return Work(kind=WorkKind.RESIZING, flops=4 * elements, read=read, written=written, elements=elements)
    if name in _GATHERS:
        # A whole table is not read for a few rows of it.
        read = min(read, 2 * written) if name in ("embedding", "index", "gather", "index_select") else read
        return Work(kind=WorkKind.GATHER, flops=0, read=read, written=written)
    if name in _REDUCTIONS:
        passes = _COLUMNS if _sums_columns(args, given) else 1.0
        return Work(kind=WorkKind.REDUCTION, flops=elements, read=read, written=written, tensors=max(1, len(given)),
                    passes=passes)  # fmt: skip
    if name.startswith(("_foreach_", "_fused_")):
        return Work(
            kind=WorkKind.ELEMENTWISE,
            flops=sum(each.numel() for each in given),
            read=read,
            written=written,
            tensors=_list_length(args),
            mixed=len({each.dtype for each in given}) > 1,
        )
    return Work(kind=WorkKind.ELEMENTWISE, flops=elements, read=read, written=written)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a value that may be nested in lists."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [each for item in value for each in tensors_in(item)]
    return []


def type_name(dtype: torch.dtype) -> str:
    """The name of a type that a device model has a rate for."""
    name = str(dtype).removeprefix("torch.")
    return name if name in ("float16", "bfloat16", "float64") else "float32"


def _bytes(tensor: Tensor) -> int:
    """The bytes of the elements, or of what they lie in if elements share memory."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _is_free(target: OpOverload, name: str) -> bool:
    return name in _FREE or bool(target.is_view) or name in ("split", "split_with_sizes", "unbind", "chunk")


def _written_bytes(target: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    total = 0
    for position, argument in enumerate(schema_of(target).arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[position] if position < len(args) else kwargs.get(argument.name)
            total += sum(map(_bytes, tensors_in(value)))
    return total


def _list_length(args: Sequence[Any]) -> int:
    return max((len(each) for each in args if isinstance(each, list | tuple)), default=1)


_COLUMNS = 2.2
"""How often sums over columns read their operand, compared with sums over rows."""


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
    )


def _products(name: str, given: list[Tensor], made: list[Tensor], read: int, written: int) -> Work:
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
    last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    plain = taps == 1 and x.shape[2:] == y.shape[2:]
    return Convolution(pixels, into, out, taps, groups, way, _bytes(x) + _bytes(y), last, plain)


def _convolution(given: list[Tensor], y: Tensor, args: Sequence[Any], read: int, written: int) -> Work:
    x, w = given[0], given[1]
    transposed = bool(args[6]) if len(args) > 6 else False
    groups = int(args[8]) if len(args) > 8 and isinstance(args[8], int) else 1
    part = _pass(x, w, y, groups, transposed, "forward")
    kind = type_name(x.dtype)
    return Work(kind=WorkKind.CONVOLUTION, type=kind, flops=part.flops, read=read, written=written, parts=(part,))


def _convolution_backward(args: Sequence[Any], made: list[Tensor], read: int, written: int) -> Work:
    y, x, w = args[:3]
    transposed, groups, mask = bool(args[7]), int(args[9]), args[10]
    ways = [way for way, wanted in zip(("input", "weight"), mask, strict=False) if wanted]
    parts = tuple(_pass(x, w, y, groups, transposed, way) for way in ways)
    kind, flops = type_name(x.dtype), sum(part.flops for part in parts)
    return Work(kind=WorkKind.CONVOLUTION, type=kind, flops=flops, read=read, written=written, parts=parts)


def _attention(
    target: OpOverload,
    name: str,
    given: list[Tensor],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    read: int,
    written: int,
) -> Work:
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
    )


def _argument(target: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], name: str) -> Any:
    """The value that an operation gets for one of its parameters; None if it gets none."""
    names = [argument.name for argument in schema_of(target).arguments]
    place = names.index(name) if name in names else len(args)
    return args[place] if place < len(args) else kwargs.get(name)


def _copy(name: str, given: list[Tensor], made: list[Tensor], read: int, written: int) -> Work:
    places = {each.device.type for each in (*given, *made)}
    if len(places) > 1:
        return Work(kind=WorkKind.TRANSFER, read=read, written=written)
    if name == "copy_" and len(given) > 1:
        read = _bytes(given[1])
        written = _bytes(given[0])
    target = given[0] if name == "copy_" else made[0] if made else None
    source = given[-1] if given else None
    turned = (
        name not in ("cat", "stack")
        and source is not None
        and target is not None
        and source.shape == target.shape
        and source.dim() > 1
        and source.stride(-1) != target.stride(-1)
        and min(source.shape[-2:]) > 1
    )
    kind = WorkKind.TRANSPOSITION if turned else WorkKind.ELEMENTWISE
    elements = max((each.numel() for each in made), default=1)
    return Work(kind=kind, read=read, written=written, tensors=max(1, len(given)), elements=elements)


_SHORT: Mapping[str, str] = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}


def described(value: Any) -> str:
    """Types and shapes of results: ``f32[8,64,32,32]``."""
    described = []
    for each in tensors_in(value):
        name = str(each.dtype).removeprefix("torch.")
        letters = name.rstrip("0123456789")
        short = f"{_SHORT.get(letters, letters)}{name[len(letters) :]}"
        described.append(f"{short}[{','.join(map(str, each.shape))}]")
    return ", ".join(described[:4]) + (", …" if len(described) > 4 else "")
