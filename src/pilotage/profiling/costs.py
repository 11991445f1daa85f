"""The arithmetic and memory traffic of an operation, from its arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils.flop_counter import flop_registry

from pilotage.torch_private import OpOverload, schema_of

__all__ = ["bytes_of", "described", "flops_of", "is_free", "operation_name", "tensors_in"]

_FREE = {"aten::detach", "aten::alias", "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::_unsafe_view"}
_SHORT: Mapping[str, str] = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}
_SHOWN = 4
"""How many results of an operation are described."""


def operation_name(target: Any) -> str:
    """Such as ``aten.convolution``."""
    if isinstance(target, OpOverload):
        return schema_of(target).name.replace("::", ".")
    return str(getattr(target, "__name__", target))


def is_free(target: Any) -> bool:
    """Whether an operation computes nothing: a view, or one element of several results."""
    if not isinstance(target, OpOverload):
        return True
    return bool(target.is_view) or schema_of(target).name in _FREE


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a value, in lists and tuples too."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for each in value for tensor in tensors_in(each)]
    return []


def flops_of(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    """Floating-point operations: by torch's own formulas for products, else one for each element of the result."""
    formula = flop_registry.get(getattr(target, "overloadpacket", None))
    if formula is not None:
        try:
            return int(formula(*args, **kwargs, out_val=result))
        except (TypeError, ValueError, AssertionError, IndexError):
            # The formula does not support these arguments.
            pass
    return sum(tensor.numel() for tensor in tensors_in(result) if tensor.is_floating_point())


def bytes_of(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    """Bytes that are read and written, each tensor once."""
    seen: dict[int, int] = {}
    for tensor in tensors_in([*args, *kwargs.values(), result]):
        seen[id(tensor)] = min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
    return sum(seen.values())


def described(value: Any) -> str:
    """Types and shapes: ``f32[8,64,32,32]``."""
    tensors = tensors_in(value)
    texts = [f"{_type(tensor)}[{','.join(map(str, tensor.shape))}]" for tensor in tensors[:_SHOWN]]
    return ", ".join(texts) + (", …" if len(tensors) > _SHOWN else "")


def _type(tensor: Tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    letters = name.rstrip("0123456789")
    return f"{_SHORT.get(letters, letters)}{name[len(letters) :]}"
