"""Plain attributes of modules that forward changes.

A captured forward never runs again, so an attribute that it changes in Python would keep the value of the capture.
Parameters and buffers are part of the program's state and are exempt. For the others:

- a tensor changed in place, or replaced by one that depends on inputs, weights or its own old value, is state that would
  be lost: refused;
- a tensor that depends on nothing but constants is a cache: put back, since the program computes it again, with a warning;
- a list or dictionary that forward filled with tensors is emptied of them again, with a warning;
- any other value (a counter, say) is kept as Python left it, with a warning, since a branch on it is now frozen.
"""

from __future__ import annotations

import copy
from collections import deque
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from pilotage.errors import CaptureError

_MISSING = object()
_CONTAINERS = (list, dict, set, deque)
_TORCHS_OWN = frozenset(vars(nn.Module())) | {"_flat_weights", "_is_full_backward_hook"}


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute that forward changed."""

    module: nn.Module
    path: str
    name: str
    before: Any
    after: Any
    text: str
    """How the value changed, in words."""

    @property
    def replaces_a_tensor(self) -> bool:
        """Whether the old value was a tensor."""
        return isinstance(self.before, Tensor)

    def __str__(self) -> str:
        return f"{self.path}.{self.name}" if self.path else self.name

    @property
    def holds_tensors(self) -> bool:
        """Whether the new value is a tensor, or a container with a tensor in it."""
        return any(isinstance(item, Tensor) for item in (self.after, *_items(self.after)))

    def put_back(self) -> None:
        """Give the attribute the value that it had before capture."""
        if self.before is _MISSING:
            self.module.__dict__.pop(self.name, None)
        elif isinstance(self.before, _Contents):
            self.before.restore()
            self.module.__dict__[self.name] = self.before.container
        else:
            self.module.__dict__[self.name] = self.before


class _Contents:
    """What a list, dictionary or set held, so that a change inside of it can be seen and undone."""

    def __init__(self, container: Any) -> None:
        self.container = container
        self._copy = copy.copy(container)

    def __repr__(self) -> str:
        return repr(self._copy)

    def same_as(self, other: Any) -> bool:
        if other is not self.container or len(other) != len(self._copy):
            return False
        return all(_same(old, new) for old, new in zip(_items(self._copy), _items(other), strict=True))

    def restore(self) -> None:
        self.container.clear()
        (self.container.extend if isinstance(self.container, (list, deque)) else self.container.update)(self._copy)


class AttributeWatch:
    """Notes the plain attributes of a module and all its parts, and tells what became of them."""

    def __init__(self, module: nn.Module) -> None:
        self._modules = [(path, part) for path, part in module.named_modules() if not _is_torchs(part)]
        self._before = [{name: _noted(value) for name, value in _plain(part).items()} for _, part in self._modules]
        self._versions = {
            id(tensor): tensor._version for values in self._before for tensor in values.values() if _is_tensor(tensor)
        }

    def changes(self) -> list[Change]:
        """Attributes that are another object, or an unequal value, by now."""
        found = []
        for (path, part), before in zip(self._modules, self._before, strict=True):
            after = _plain(part)
            for name in {**before, **after}:
                old, new = before.get(name, _MISSING), after.get(name, _MISSING)
                if not _same(old, new):
                    found.append(Change(part, path, name, old, new, f"from {_short(old)} to {_short(new)}"))
        return found

    def refuse_tensors_changed_in_place(self) -> None:
        """Raise for a tensor attribute that forward wrote into."""
        for (path, part), before in zip(self._modules, self._before, strict=True):
            for name, value in before.items():
                if _is_tensor(value) and value._version != self._versions[id(value)]:
                    raise lost_state(Change(part, path, name, value, value, "in place"))


def lost_state(change: Change) -> CaptureError:
    """The error for a tensor that would be lost between two steps."""
    return CaptureError(
        f"forward changes the tensor attribute '{change}' of {type(change.module).__name__}, which is neither a parameter "
        f"nor a buffer: the captured program would lose the change after each step. Register it in __init__ with "
        f"self.register_buffer('{change.name}', ...) and update it in place with self.{change.name}.copy_(...)."
    )


def frozen_value(change: Change) -> str:
    """The warning for a plain value that forward changed."""
    return (
        f"forward changed the attribute '{change}' of {type(change.module).__name__} {change.text}. forward runs once, at "
        "capture: later steps do not change it, and a branch on it keeps the way it took. "
        "Use a buffer and torch.where if the result has to depend on it."
    )


def _plain(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in module.__dict__.items() if name not in _TORCHS_OWN or name == "training"}


def _noted(value: Any) -> Any:
    return _Contents(value) if isinstance(value, _CONTAINERS) else value


def _items(value: Any) -> tuple[Any, ...]:
    if isinstance(value, dict):
        return (*value.keys(), *value.values())
    return tuple(value) if isinstance(value, (*_CONTAINERS, tuple)) else ()


def _is_torchs(module: nn.Module) -> bool:
    """Modules of torch itself keep weak references and flattened weights that say nothing about the model."""
    return type(module).__module__.startswith("torch.nn")


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


def _short(value: Any) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    text = "nothing" if value is _MISSING else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
