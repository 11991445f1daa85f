"""Makes the Python wrapper that Inductor generates around its kernels independent of Inductor.

The wrapper imports the whole compiler to find its kernels, which takes seconds. What runs is one function that
allocates, calls kernels and returns; everything else is removed here, and the kernels are passed in.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pilotage.torch_private import assert_size_stride

_KEPT_MODULES = frozenset({"torch", "math", "cmath", "ctypes", "torch._C"})
"""Modules that a wrapper may import; all other imports belong to the compiler."""

_TAKE_A_CARD = frozenset({"_DeviceGuard", "set_device", "get_raw_stream"})
"""Functions that take the number of a card."""

_HARNESS = frozenset({"get_args", "benchmark_compiled_module"})
"""Functions for benchmarking a wrapper by hand."""


class NotSelfContained(Exception):
    """A wrapper needs the compiler at run time."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A wrapper that does not need the compiler."""

    source: str
    kernels: tuple[str, ...]
    """The names of the kernels to pass in."""


def stand_alone(source: str) -> Wrapper:
    """Remove the compiler from a wrapper."""
    kernels: list[str] = []
    body = [_WithoutArgumentChecks().visit(each) for each in ast.parse(source).body if _is_kept(each, kernels)]
    used = _externals(body)
    if missing := sorted(name for name in used if not hasattr(ExternKernels(), name)):
        raise NotSelfContained(f"the compiled code calls {', '.join(missing)} of Inductor")
    return Wrapper(ast.unparse(ast.Module(body, type_ignores=[])), tuple(kernels))


def for_card(wrapper: Wrapper, index: int) -> Wrapper:
    """A wrapper that was compiled for the first card of a machine, for another one."""
    return replace(wrapper, source=ast.unparse(_OnCard(index).visit(ast.parse(wrapper.source))))


def load(wrapper: Wrapper, kernels: Mapping[str, Any], name: str) -> Any:
    """Load the function of a wrapper: it takes a list of tensors, which it clears, and returns a tuple of tensors."""
    namespace: dict[str, Any] = {
        "__name__": name,
        "extern_kernels": ExternKernels(),
        "align": _align,
        "assert_tensor_metadata": _assert_tensor_metadata,
        **kernels,
    }
    exec(compile(wrapper.source, f"<native code {name}>", "exec"), namespace)
    return namespace["call"]


class ExternKernels:
    """Torch's own kernels under the names that wrappers use."""

    def __getattr__(self, name: str) -> Any:
        kernel = getattr(torch, name)
        # Cached as an attribute: every step looks it up, and this function is slower.
        setattr(self, name, kernel)
        return kernel

    @staticmethod
    def bias_addmm(
        bias: Tensor, left: Tensor, right: Tensor, *, out: Tensor, alpha: float = 1, beta: float = 1
    ) -> Tensor:
        """``torch.addmm``; a bias that is equal in every row is passed as one row."""
        row = bias[0] if bias.stride(0) == 0 or bias.shape[0] == 1 else bias
        return torch.addmm(row, left, right, out=out, alpha=alpha, beta=beta)

    @staticmethod
    def bmm_dtype(left: Tensor, right: Tensor, *, out_dtype: torch.dtype, out: Tensor) -> Tensor:
        """``torch.bmm`` of narrow numbers with a wide result."""
        return torch.bmm(left, right, out_dtype=out_dtype, out=out)


class _WithoutArgumentChecks(ast.NodeTransformer):
    """Removes the checks of arguments from a wrapper, which cost a call each in every step: `NativeCode` makes them.

    The checks of what kernels return stay.
    """

    def __init__(self) -> None:
        self._arguments: set[str] = set()

    def visit_Assign(self, statement: ast.Assign) -> ast.Assign:
        """Note the names of the arguments."""
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id="args")):
                self._arguments.update(each.id for each in names if isinstance(each, ast.Name))
        return statement

    def visit_Expr(self, statement: ast.Expr) -> ast.stmt | None:
        """Drop the check of an argument."""
        match statement.value:
            case ast.Call(func=ast.Name(id="assert_size_stride"), args=[ast.Name(id=name), *_]):
                return None if name in self._arguments else statement
        return statement


class _OnCard(ast.NodeTransformer):
    """Puts the number of another card into all places where a wrapper names the first one."""

    def __init__(self, index: int) -> None:
        self._index = index

    def visit_Call(self, called: ast.Call) -> ast.AST:
        """Change the number of the card in a guard, a stream and a device."""
        name = getattr(called.func, "attr", getattr(called.func, "id", None))
        if name in _TAKE_A_CARD:
            called.args = [self._other(each) for each in called.args]
        for keyword in called.keywords:
            if keyword.arg == "index" and name == "device":
                keyword.value = self._other(keyword.value)
        return self.generic_visit(called)

    def visit_Constant(self, value: ast.Constant) -> ast.Constant:
        """Change the name of the card."""
        return ast.Constant(f"cuda:{self._index}") if value.value == "cuda:0" else value

    def _other(self, value: ast.expr) -> ast.expr:
        is_first = isinstance(value, ast.Constant) and value.value == 0
        return ast.Constant(self._index) if is_first else value


def _align(size: int) -> int:
    return math.ceil(size / 64) * 64


def _assert_tensor_metadata(
    tensor: Tensor | None, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, operation: str
) -> None:
    """Check a kernel's result, as wrappers do from torch 2.14 on."""
    if tensor is None:
        return
    if tensor.dtype != dtype:
        raise RuntimeError(f"{operation} returned {tensor.dtype}, but the compiled code expects {dtype}.")
    assert_size_stride(tensor, size, stride, operation)


def _is_kept(statement: ast.stmt, kernels: list[str]) -> bool:
    match statement:
        case ast.Import(names=names):
            return all(alias.name in _KEPT_MODULES for alias in names)
        case ast.ImportFrom(module=module):
            return module in _KEPT_MODULES
        case ast.FunctionDef(name=name):
            return name not in _HARNESS
        case ast.If() | ast.Delete():
            return False
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _mentions(value, "async_compile"):
            kernels.append(name)
            return False
        case ast.Assign(value=value):
            return not _mentions(value, "AsyncCompile") and not _mentions(value, "_SymmetricMemory")
    return not _mentions(statement, "async_compile")


def _mentions(tree: ast.AST, name: str) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)
        for node in ast.walk(tree)
    )


def _externals(body: Iterable[ast.stmt]) -> set[str]:
    return {
        node.attr
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "extern_kernels"
    }
