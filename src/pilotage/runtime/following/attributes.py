"""The Python values that a module reads, compared with those that were captured.

These are the plain attributes of all parts, what is in attributes that are lists, dictionaries, sets or plain objects,
and what forward and functions such as a loss read from global variables and closures: numbers, words, tensors, and
small containers of these.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any

from torch import Tensor, nn

from pilotage.capture.attributes import TORCHS_OWN, is_plain_object
from pilotage.capture.module_state import is_torchs

_MODE = "training"
_LARGEST = 100
"""Containers with more items are not looked into."""

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Changed:
    """A value that has changed since the capture."""

    name: str
    owner: str
    """Its owner: the class of a submodule, or a function."""

    before: Any
    after: Any

    @property
    def is_new(self) -> bool:
        """Whether the value is new since the capture."""
        return self.before is _MISSING

    @property
    def text(self) -> str:
        """The change in a message."""
        return f"from {_short(self.before)} to {_short(self.after)}"


class Attributes:
    """The Python values that a module and its parts can read."""

    def __init__(self, module: nn.Module) -> None:
        self._parts = list(module.named_modules())
        self.live: list[Any] = [vars(part) for _, part in self._parts]
        """The present attribute dictionaries, then the containers among their values."""
        self._names = [path for path, _ in self._parts]
        self._owners = [type(part).__name__ for _, part in self._parts]
        for name, owner, container in self._containers():
            self.live.append(container)
            self._names.append(name)
            self._owners.append(owner)
        self._outside = list(_outside(part for _, part in self._parts))
        self.readers = [read for _, _, read in self._outside]
        """Each returns a value from outside of the module that its functions read."""
        self.note()

    def note(self) -> None:
        """Remember the present values."""
        self.noted = [each.copy() for each in self.live]
        self.read = [_kept(read()) for read in self.readers]

    def modes(self) -> list[str]:
        """The paths of the submodules whose training mode has changed."""
        pairs = zip(self._parts, self.noted, strict=False)
        return [path for (path, part), noted in pairs if noted[_MODE] != part.training]

    def changed(self) -> Iterator[Changed]:
        """The values that have changed, except modes."""
        for position, (live, noted) in enumerate(zip(self.live, self.noted, strict=True)):
            name, owner = self._names[position], self._owners[position]
            if position < len(self._parts):
                yield from _changed_attributes(name, owner, live, noted)
            elif not _equal(live, noted):
                yield Changed(name, owner, noted, live.copy())
        for (name, owner, read), noted in zip(self._outside, self.read, strict=True):
            if not _equal(present := _kept(read()), noted):
                yield Changed(name, owner, noted, present)

    def _containers(self) -> Iterator[tuple[str, str, Any]]:
        seen: set[int] = set()
        for path, part in self._parts:
            for name, value in {} if is_torchs(part) else vars(part).items():
                table = vars(value) if is_plain_object(value) else value
                if name in TORCHS_OWN or id(table) in seen or type(table) not in (list, dict, set):
                    continue
                if len(table) <= _LARGEST:
                    seen.add(id(table))
                    yield _joined(path, name), type(part).__name__, table


def _changed_attributes(path: str, owner: str, live: dict[str, Any], noted: dict[str, Any]) -> Iterator[Changed]:
    for name in {**noted, **live}:
        before, after = noted.get(name, _MISSING), live.get(name, _MISSING)
        if before is not after and name not in TORCHS_OWN and not _equal(before, after):
            yield Changed(_joined(path, name), owner, before, after)


def _outside(parts: Iterator[nn.Module]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """The plain values that forward and functions among the attributes read from global variables and closures."""
    functions: dict[int, FunctionType] = {}
    for part in parts:
        own = [] if is_torchs(part) else [type(part).forward, *vars(part).values()]
        for each in own:
            _collect(each, functions)
        if not is_torchs(part):
            yield "forward", type(part).__name__, partial(getattr, type(part), "forward")
    for function in functions.values():
        owner, table = function.__qualname__, function.__globals__
        for name in _global_names(function.__code__):
            if _is_followed(table.get(name, _MISSING)):
                yield name, owner, partial(table.get, name, _MISSING)
        for name, cell in _cells(function):
            if _is_followed(_content(cell)):
                yield name, owner, partial(_content, cell)


def _collect(value: Any, functions: dict[int, FunctionType]) -> None:
    """Add a function and those that it calls, as far as they are written in the same module or closed over."""
    function = inspect.unwrap(value) if isinstance(value, FunctionType) else None
    if not isinstance(function, FunctionType) or id(function) in functions:
        return
    functions[id(function)] = function
    table = function.__globals__
    called = [table.get(name) for name in _global_names(function.__code__)]
    for each in [*called, *(_content(cell) for _, cell in _cells(function))]:
        if getattr(each, "__globals__", None) is table:
            _collect(each, functions)


def _global_names(code: CodeType) -> set[str]:
    """The global variables that a function reads, and what is written inside of it, such as a generator."""
    own = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(_global_names(each) for each in code.co_consts if isinstance(each, CodeType)))


def _cells(function: FunctionType) -> Iterator[tuple[str, CellType]]:
    return zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _is_followed(value: Any) -> bool:
    if type(value) in (list, set, dict) and len(value) <= _LARGEST:
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    return _is_plain(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, Tensor))


def _kept(value: Any) -> Any:
    """The value, or a copy of a container, whose items may change later."""
    return value.copy() if type(value) in (list, set, dict) else value


def _equal(before: Any, after: Any) -> bool:
    try:
        return before is after or bool(before == after)
    except Exception:
        return False


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    text = "nothing" if value is _MISSING else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
