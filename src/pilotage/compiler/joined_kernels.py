"""Compiles the CPU kernels of a graph together; used only in the compiling process.

Inductor starts the C++ compiler once for each kernel, and most of that time goes into torch's headers. Here the kernels
of a graph become a few source files, one for each thread of the compiler. Each kernel keeps its own bindings to Python,
those that Inductor generates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pilotage.compiler.kernels import load_cpp_kernel

_DEFINITION = re.compile(r'(extern "C")([^;{(]*\s)kernel(?=\s*\()')
"""The name of a kernel where it is defined."""

_HOISTED = re.compile(r"^[ \t]*#[ \t]*(?:include|define PY_SSIZE_T_CLEAN).*$", re.MULTILINE)
"""Lines that must not be inside of a namespace."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A kernel that is not compiled yet."""

    types: tuple[str, ...]
    """The C++ types of its arguments."""

    source: str


@contextmanager
def kernels_compiled_together(is_wanted: bool = True) -> Iterator[None]:
    """Compile the CPU kernels of each generated wrapper together while this is open."""
    if not is_wanted:
        yield
        return
    from pilotage.torch_private import AsyncCompile

    one_by_one, waiting = AsyncCompile.cpp_pybinding, AsyncCompile.wait

    def collected(_: Any, types: Sequence[str], source: str) -> Pending:
        return Pending(tuple(types), source)

    def awaited(self: Any, scope: dict[str, Any]) -> None:
        pending = {name: value for name, value in scope.items() if isinstance(value, Pending)}
        scope.update(zip(pending, _compiled(list(pending.values()), self.submit), strict=True))
        waiting(self, scope)

    AsyncCompile.cpp_pybinding, AsyncCompile.wait = collected, awaited
    try:
        yield
    finally:
        AsyncCompile.cpp_pybinding, AsyncCompile.wait = one_by_one, waiting


def _compiled(kernels: Sequence[Pending], submit: Callable[..., Any]) -> list[Callable[..., None]]:
    from pilotage.torch_private import inductor_config

    if not kernels:
        return []
    count = max(1, min(inductor_config.compile_threads or 1, len(kernels)))
    # With one thread nothing may be submitted: it would run at once, and wait for a lock that the caller holds.
    how = {"submit_fn": submit} if count > 1 else {}
    begun = [_libraries().load_async(joined(kernels[number::count]), "cpu", **how) for number in range(count)]
    files = [Path(finish()) for finish in begun]
    return [load_cpp_kernel(files[number % count], _name(number // count)) for number in range(len(kernels))]


def joined(kernels: Sequence[Pending]) -> str:
    """One source file with all kernels, each with its bindings in a namespace of its own."""
    parts = [_with_bindings(kernel, _name(number)) for number, kernel in enumerate(kernels)]
    hoisted = dict.fromkeys(line.strip() for part in parts for line in _HOISTED.findall(part))
    spaces = [f"namespace of_{_name(number)} {{\n{_HOISTED.sub('', part)}\n}}\n" for number, part in enumerate(parts)]
    return "\n".join([*hoisted, *spaces])


def _name(number: int) -> str:
    return f"kernel_{number}"


def _with_bindings(kernel: Pending, name: str) -> str:
    """The source of a kernel under another name, and Inductor's bindings for it."""
    # A template that several kernels use would become a function, with sizes that are no longer constants.
    code, found = _DEFINITION.subn(rf"\g<1> __attribute__((flatten))\g<2>{name}", kernel.source)
    if found != 1:
        raise ValueError(f"the source defines {found} kernels instead of one")
    given = ", ".join(f"parse_arg<{each.replace('const ', '')}>(args, {n})" for n, each in enumerate(kernel.types))
    bindings = _libraries().suffix_template.format(
        arg_len=len(kernel.types),
        call_entry_func=f"{name}({given}); Py_RETURN_NONE;",
        entry_func=name,
        extra_parse_arg="",
    )
    return f"{code}\n{bindings}"


@cache
def _libraries() -> Any:
    """Inductor's compilation of kernels, which returns the library's file instead of loading it."""
    from pilotage.torch_private import CppPythonBindingsCodeCache

    class Libraries(CppPythonBindingsCodeCache):  # type: ignore[misc]
        cache: dict[str, Callable[[], Any]] = {}  # noqa: RUF012

        @classmethod
        def _load_library(cls, path: str, key: str) -> Any:
            return path

    return Libraries
