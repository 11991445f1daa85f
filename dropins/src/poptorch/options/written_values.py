"""Arguments of options in text form: literals, enums, dtypes, stages, strategies and locations."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, cast

import torch

from poptorch import enums
from poptorch.options.stages import Phase, Stage
from poptorch.options.strategies import (
    ParallelPhasedExecution,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
)
from poptorch.options.tensor_locations import TensorLocationSettings

_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    value_class.__name__: value_class
    for value_class in (
        ParallelPhasedExecution,
        Phase,
        PipelinedExecution,
        SerialPhasedExecution,
        ShardedExecution,
        Stage,
        TensorLocationSettings,
    )
}


class RefusedValueError(ValueError):
    """An expression that is neither a literal nor a name that options accept."""


def arguments_of(args: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, as values."""
    named = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise RefusedValueError("** is not accepted; write the arguments out.")
        named[keyword.arg] = value_of_node(keyword.value)
    return tuple(value_of_node(argument) for argument in args), named


def value_of_node(node: ast.expr) -> Any:
    """The value of an expression that options accept."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=elements):
            return [value_of_node(element) for element in elements]
        case ast.Tuple(elts=elements):
            return tuple(value_of_node(element) for element in elements)
        case ast.Set(elts=elements):
            return {value_of_node(element) for element in elements}
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {value_of_node(key): value_of_node(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Attribute():
            return _named_value(ast.unparse(node))
        case ast.Call():
            return _constructed(node)
    raise _refusal(ast.unparse(node))


def value_of_text(text: str) -> Any:
    """The enum member or dtype that a string names, or the string itself."""
    name = text if text.startswith(("poptorch.", "torch.")) else f"poptorch.{text}"
    try:
        return _named_value(name)
    except RefusedValueError:
        return text


def _named_value(name: str) -> Any:
    match name.split("."):
        case ["poptorch", enum_name, member] if enum_name in enums.__all__:
            members: type[Enum] = getattr(enums, enum_name)
            if member in members.__members__:
                return members[member]
        case ["torch", dtype_name]:
            dtype = getattr(torch, dtype_name, None)
            if isinstance(dtype, torch.dtype):
                return dtype
    raise _refusal(name)


def _constructed(node: ast.Call) -> Any:
    """The value of ``poptorch.Stage("a").ipu(1)`` and the like."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="poptorch"), attr=name) if name in _CONSTRUCTORS:
            function: Callable[..., Any] = _CONSTRUCTORS[name]
        case ast.Attribute(value=ast.Call() as inner, attr=name):
            function = _public_method(_constructed(inner), name)
        case _:
            raise _refusal(ast.unparse(node))
    positional, named = arguments_of(node.args, node.keywords)
    return function(*positional, **named)


def _public_method(target: object, name: str) -> Callable[..., Any]:
    if type(target) not in _CONSTRUCTORS.values() or name.startswith("_"):
        raise _refusal(f"{type(target).__name__}.{name}")
    method = getattr(target, name)
    if not callable(method):
        raise _refusal(f"{type(target).__name__}.{name}")
    return cast(Callable[..., Any], method)


def _refusal(text: str) -> RefusedValueError:
    return RefusedValueError(
        f"{text} is not accepted. Arguments must be literals, poptorch enums, torch dtypes, or calls of "
        f"{', '.join(sorted(_CONSTRUCTORS))}."
    )
