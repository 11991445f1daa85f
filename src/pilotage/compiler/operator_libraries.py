"""The libraries that define the custom operators of a program: the compiling process has to load them as well."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self

import torch

from pilotage.errors import OptionError
from pilotage.program.program import Program
from pilotage.torch_private import OpOverload, custom_operators, definition_of, schema_of

_OF_TORCH = frozenset({"aten", "prims", "prim", "rngprims", "quantized", "_quantized", "c10d", "_c10d_functional"})
"""Namespaces of operators that every process has."""

_IS_LOADING: ContextVar[bool] = ContextVar("pilotage_is_loading_operators", default=False)


def refuse_while_loading() -> None:
    """Raise if a module runs a program while it is imported for its operators: that would train a second time."""
    if _IS_LOADING.get():
        raise OptionError(
            "The compiling process imports the module that defines a custom operator, and this module runs a program "
            "when it is imported. Define the operator in a module that does nothing else."
        )


@dataclass(frozen=True, slots=True)
class OperatorLibraries:
    """The modules and libraries to load, so that all operators of a program are known."""

    modules: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Shared libraries that were loaded with ``torch.ops.load_library``."""

    @classmethod
    def of(cls, program: Program) -> Self:
        """The libraries of a program; raises `OptionError` if an operator works in this process only."""
        used = list(_custom(program))
        modules = dict.fromkeys(name for each in used for name in _modules(each))
        return cls(tuple(modules), tuple(sorted(map(str, torch.ops.loaded_libraries))) if used else ())

    def load(self) -> None:
        """Load them. An operator that is still unknown afterwards is reported where it is called."""
        token = _IS_LOADING.set(True)
        try:
            for file in self.files:
                torch.ops.load_library(file)
            for name in self.modules:
                importlib.import_module(name)
        finally:
            _IS_LOADING.reset(token)

    def to_data(self) -> dict[str, list[str]]:
        """The libraries as plain data."""
        return {"modules": [*self.modules], "files": [*self.files]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Restore libraries from plain data."""
        return cls(tuple(data["modules"]), tuple(data["files"]))


def _custom(program: Program) -> Iterator[OpOverload]:
    seen: dict[OpOverload, None] = {}
    for computation in program.computations.values():
        for node in () if computation.graph is None else computation.graph.graph.nodes:
            if isinstance(node.target, OpOverload) and node.target.namespace not in _OF_TORCH:
                seen[node.target] = None
    yield from seen


def _modules(operation: OpOverload) -> Iterator[str]:
    """The module that defines an operator in Python, and the one that is named like its namespace."""
    name = schema_of(operation).name
    if torch.Tag.cudagraph_unsafe in operation.tags:
        raise OptionError(f"The program calls {name}, which works on the host, so it cannot be compiled.")
    definition = custom_operators.get(name)
    if definition is not None:
        module = definition_of(definition).__module__
        if module == "__main__":
            raise OptionError(
                f"The program calls {name}, which the script itself defines. To have the program compiled, define the "
                "operator in a module, which the compiling process can import."
            )
        yield module
    elif operation.namespace in sys.modules:
        yield operation.namespace
