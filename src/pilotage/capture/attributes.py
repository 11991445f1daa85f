"""Plain attributes of modules that forward changes.

A captured forward never runs again, so an attribute that it changes in Python keeps its value from the capture.
Parameters and buffers are part of the program's state and are not affected. For other attributes:

- A tensor changed in place, or replaced by a tensor that depends on inputs, weights or its own old value, is state that
  would be lost. This is an error.
- A tensor under a new name cannot have been read by forward. It is removed, with a warning.
- A tensor that depends only on constants is a cache. It is restored, with a warning: the program computes it again.
- A list or dictionary that forward filled with tensors is restored, with a warning.
- Any other value, such as a counter, stays as Python left it, with a warning: a branch on it is now fixed.

PopTorch continues where the first rule raises: the statement runs once, at capture, and the program uses the result as
a constant. With ``once`` that is a warning too.
"""

from __future__ import annotations

import copy
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

from torch import Tensor, nn

from pilotage.capture.module_state import is_torchs
from pilotage.errors import CaptureError
from pilotage.program.graphs.source_lines import called_from
from pilotage.torch_private import MODULE_CACHES, storage_address

_MISSING = object()
_CONTAINERS = (list, dict, set, deque, tuple)
_MAXIMUM_DEPTH = 20
TORCHS_OWN = frozenset(vars(nn.Module())) | MODULE_CACHES


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute that forward changed."""

    module: nn.Module
    path: str
    name: str
    before: Any
    after: Any
    text: str
    """A description of the change."""

    @property
    def replaces_a_tensor(self) -> bool:
        """Whether the old value was a tensor."""
        return isinstance(self.before, Tensor)

    @property
    def is_note(self) -> bool:
        """Whether it is a tensor under a new name."""
        return self.before is _MISSING and isinstance(self.after, Tensor)

    def __str__(self) -> str:
        return f"{self.path}.{self.name}" if self.path else self.name

    @property
    def holds_tensors(self) -> bool:
        """Whether the new value is a tensor or contains one."""
        return any(isinstance(item, Tensor) for item in _inside(self.after))

    def put_back(self) -> None:
        """Restore the value from before the capture."""
        if self.before is _MISSING:
            self.module.__dict__.pop(self.name, None)
        elif isinstance(self.before, _Contents):
            self.before.restore()
            self.module.__dict__[self.name] = self.before.container
        else:
            self.module.__dict__[self.name] = self.before


class _Contents:
    """A deep snapshot of a container or plain object, to detect and undo changes inside it."""

    def __init__(self, container: Any, known: dict[int, _Contents], depth: int = 0) -> None:
        known[id(container)] = self
        self.container = container
        self._copy = copy.copy(_table(container))
        inner = [item for item in _items(self._copy) if _is_container(item)] if depth < _MAXIMUM_DEPTH else []
        self._inner = [known.get(id(item)) or _Contents(item, known, depth + 1) for item in inner]

    def __repr__(self) -> str:
        return repr(self._copy)

    def everything(self) -> Iterator[_Contents]:
        """This snapshot and all nested ones, each once."""
        waiting, seen = [self], set()
        while waiting:
            current = waiting.pop()
            if id(current) not in seen:
                seen.add(id(current))
                yield current
                waiting.extend(current._inner)

    def difference(self, now: Any) -> tuple[str, Any, Any] | None:
        """The only entry of an object or dictionary that has changed, and its values; None for other changes."""
        then, after = self._copy, _table(self.container)
        if now is not self.container or not isinstance(then, dict):
            return None
        changed = [key for key in {**then, **after} if not _same(then.get(key, _MISSING), after.get(key, _MISSING))]
        if len(changed) != 1:
            return None
        (key,) = changed
        entry = f"[{key!r}]" if isinstance(self.container, dict) else f".{key}"
        return entry, then.get(key, _MISSING), after.get(key, _MISSING)

    def same_as(self, other: Any) -> bool:
        return other is self.container and all(contents._is_unchanged() for contents in self.everything())

    def _is_unchanged(self) -> bool:
        now, then = _items(_table(self.container)), _items(self._copy)
        return len(now) == len(then) and all(map(_same, then, now))

    def restore(self) -> None:
        for contents in self.everything():
            contents._restore()

    def _restore(self) -> None:
        table = _table(self.container)
        if isinstance(table, tuple):
            return
        table.clear()
        (table.extend if isinstance(table, (list, deque)) else table.update)(self._copy)


class AttributeWatch:
    """Records the plain attributes of a module and its submodules, and reports how they changed."""

    def __init__(self, module: nn.Module, *, once: bool = False) -> None:
        self.once = once
        """Whether forward may change tensor attributes once, at capture; otherwise that is refused."""
        self._modules = list(module.named_modules())
        self._before = [{name: _noted(value) for name, value in _plain(part).items()} for _, part in self._modules]
        self._tensors = [
            (Change(part, path, name, tensor, tensor, "in place"), tensor._version)
            for (path, part), values in zip(self._modules, self._before, strict=True)
            for name, value in values.items()
            for tensor in _inside(value)
            if _is_tensor(tensor) and not is_torchs(part)
        ]

    def changes(self) -> list[Change]:
        """Attributes that are now a different object or an unequal value."""
        found = []
        for (path, part), before in zip(self._modules, self._before, strict=True):
            after = _plain(part)
            # Torch's own modules keep internal values such as weak references, which say nothing about the model.
            for name in after.keys() - before.keys() if is_torchs(part) else {**before, **after}:
                old, new = before.get(name, _MISSING), after.get(name, _MISSING)
                if not _same(old, new):
                    found.append(Change(part, path, name, old, new, _described(old, new)))
        return found

    def tensors_changed_in_place(self) -> list[Change]:
        """The tensor attributes that forward wrote into, for example through a view."""
        return [change for change, version in self._tensors if change.before._version != version]

    def lost_write(self, tensor: Tensor) -> CaptureError:
        """The error for a write into a tensor that is not part of the program's state."""
        storage = storage_address(tensor.untyped_storage())
        for change, _ in self._tensors:
            if storage_address(change.before.untyped_storage()) == storage:
                return lost_state(change, called_from())
        return CaptureError(
            "forward writes into a tensor that is not an input, a parameter or a buffer: the captured program would do "
            f"this only once. Make it a buffer of the module.{called_from()}"
        )


def once_each(changes: Iterable[Change]) -> list[Change]:
    """The changes, an object that several attributes hold only once."""
    return list({id(each.after if isinstance(each.before, _Contents) else each): each for each in changes}.values())


def lost_state(change: Change, where: str = "") -> CaptureError:
    """The error for a tensor whose change would be lost between steps."""
    return CaptureError(
        f"forward changes the tensor attribute '{change}' of {type(change.module).__name__}, which is neither a "
        "parameter nor a buffer: the captured program would lose the change after each step. Register it in __init__ "
        f"with self.register_buffer('{change.name}', ...) and update it in place with "
        f"self.{change.name}.copy_(...).{where}"
    )


def frozen_value(change: Change) -> str:
    """The warning for a plain value that forward changed."""
    if change.is_note:
        return (
            f"forward keeps a tensor in the attribute '{change}' of {type(change.module).__name__}. forward runs "
            "once, at capture, on tensors without data: the attribute does not exist afterwards, nor in later steps. "
            "Return the tensor from forward to see its values."
        )
    return (
        f"forward changed the attribute '{change}' of {type(change.module).__name__} {change.text}. forward runs "
        "once, at capture: later steps do not change it, and a branch on it always goes the same way. "
        "Use a buffer and torch.where if the result must depend on it."
    )


def _plain(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in module.__dict__.items() if name not in TORCHS_OWN or name == "training"}


def _noted(value: Any) -> Any:
    return _Contents(value, {}) if _is_container(value) else value


def _is_container(value: Any) -> bool:
    return isinstance(value, _CONTAINERS) or is_plain_object(value)


def is_plain_object(value: Any) -> bool:
    """Whether a value is an instance of a user class that could hold tensors."""
    if isinstance(value, (Tensor, nn.Module, type, Enum)) or not isinstance(getattr(value, "__dict__", None), dict):
        return False
    package = type(value).__module__.partition(".")[0]
    is_library = package in sys.stdlib_module_names or package in ("torch", "numpy")
    return isinstance(value, SimpleNamespace) or not is_library


def _table(container: Any) -> Any:
    """The object that holds a container's items."""
    return container if isinstance(container, _CONTAINERS) else vars(container)


def _items(table: Any) -> tuple[Any, ...]:
    return (*table.keys(), *table.values()) if isinstance(table, dict) else tuple(table)


def _inside(value: Any) -> Iterator[Any]:
    """A value and everything nested inside it."""
    if isinstance(value, _Contents) or _is_container(value):
        contents = value if isinstance(value, _Contents) else _Contents(value, {})
        for part in contents.everything():
            yield from _items(_table(part.container))
    else:
        yield value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if isinstance(old, _Contents):
        return old.same_as(new)
    if _is_tensor(old) or _is_tensor(new) or old is _MISSING or new is _MISSING:
        return False
    try:
        return bool(old == new)
    except Exception:
        return False


def _described(old: Any, new: Any) -> str:
    inner = old.difference(new) if isinstance(old, _Contents) else None
    entry, before, after = inner or ("", old, new)
    return f"{entry and f'at {entry} '}from {_short(before)} to {_short(after)}"


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    text = "nothing" if value is _MISSING else " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:37] + "..."
