"""How options are stored: named values that keep their type and can be frozen, copied, pickled and shown."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Self

from pilotage.engine import did_you_mean
from poptorch._errors import require

__all__ = ["Freezable", "OptionsDict", "canonical", "merged"]


class Freezable:
    """Something that can be locked against changes, together with the parts it holds."""

    _is_frozen: bool = False

    def checkIsFrozen(self, option: str | None = None) -> None:
        """Raise if the options are frozen."""
        if self._is_frozen:
            named = f" (option {option})" if option else ""
            raise AttributeError(f"Can't modify frozen Options{named}")

    def _freeze(self) -> None:
        self._set_frozen(True)

    def _unfreeze(self) -> None:
        self._set_frozen(False)

    def _set_frozen(self, frozen: bool) -> None:
        object.__setattr__(self, "_is_frozen", frozen)
        for part in vars(self).values():
            # Two groups may hold the same part, and a part may be held by a group that it holds.
            if isinstance(part, Freezable) and part._is_frozen is not frozen:
                part._set_frozen(frozen)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        duplicate = self.__class__.__new__(self.__class__)
        memo[id(self)] = duplicate
        for name, value in vars(self).items():
            object.__setattr__(duplicate, name, copy.deepcopy(value, memo))
        duplicate._unfreeze()
        return duplicate

    def _names(self) -> list[str]:
        """The names of options and groups that a user may have meant."""
        known = [*vars(self).get("_values", ()), *(each for each in dir(type(self)) if each not in _STORAGE)]
        return [each for each in known if not each.startswith("_") or each == "_Popart"]


def similar_option(group: Freezable, name: str) -> str:
    """A sentence with the option that an unknown name resembles; empty if there is none."""
    return did_you_mean(name, group._names())


_STORAGE = frozenset(
    ("checkIsFrozen", "createOrSet", "deleteIfExists", "exists", "merge", "remove", "replace", "toDict", "update")
)
"""Methods that are not options."""


class _Sealed(type):
    """Closes a group to new private attributes once its outermost constructor has returned."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        group = super().__call__(*args, **kwargs)
        object.__setattr__(group, "_is_sealed", True)
        return group


class OptionsDict(Freezable, metaclass=_Sealed):
    """A group of options, read as attributes; its names and types are fixed at construction."""

    _is_sealed: bool = False

    def __init__(self, **defaults: Any) -> None:
        self._values: dict[str, Any] = defaults
        self._declared = tuple(defaults)

    def set(self, **values: Any) -> Self:
        """Change existing options, to values of the same type."""
        for name, value in values.items():
            self.checkIsFrozen(name)
            known = ", ".join(self._values)
            require(
                name in self._values,
                f"Invalid option {name}. Valid options are: {known}.{did_you_mean(name, self._values)}",
            )
            self._values[name] = _typed_like(self._values[name], value, name)
        return self

    def createOrSet(self, **values: Any) -> Self:
        """Change options, creating those that do not exist."""
        for name, value in values.items():
            if name in self._values:
                self.set(**{name: value})
            else:
                self.checkIsFrozen(name)
                self._values[name] = value
        return self

    def replace(self, values: Mapping[str, Any]) -> None:
        """Take these values as they are; the caller has checked their types."""
        self.checkIsFrozen()
        self._values.update(values)

    def exists(self, name: str) -> bool:
        """Whether there is an option of this name."""
        return name in self._values

    def deleteIfExists(self, name: str) -> Self:
        """Remove the option of this name, if any."""
        self.checkIsFrozen(name)
        self._values.pop(name, None)
        return self

    def update(self, other: dict[str, Any]) -> dict[str, Any]:
        """Add these options to a dictionary, which must have none of their names, and return it."""
        return merged(other, self._values)

    def toDict(self) -> dict[str, Any]:
        """The options as a new dictionary."""
        return self.update({})

    def __call__(self, name: str) -> Any:
        return self._values[name] if name in self._values else getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        # Read from vars() because unpickling reads attributes before any are set.
        values: dict[str, Any] = vars(self).get("_values", {})
        if name not in values:
            raise AttributeError(f"Invalid attribute {name}.{similar_option(self, name)}")
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "__class__":
            object.__setattr__(self, name, value)
        elif name.startswith("_"):
            self.checkIsFrozen(name)
            if self._is_sealed and name not in vars(self):
                raise AttributeError(f"Invalid attribute {name}. Attributes cannot be added after construction.")
            object.__setattr__(self, name, value)
        else:
            self.set(**{name: value})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._shown())})"

    def _shown(self) -> Iterable[str]:
        later = sorted(self._values.keys() - set(self._declared))
        for name in (*self._declared, *later):
            if name in self._values:
                yield f"{name}={canonical(self._values[name])}"


def merged(base: dict[str, Any], additions: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the additions, which must have no names in common with it."""
    shared = sorted(base.keys() & additions.keys())
    require(not shared, f"Can't merge dictionaries that have keys in common: {', '.join(shared)}.")
    base.update(additions)
    return base


def canonical(value: Any) -> str:
    """A text that is equal for equal values, regardless of insertion order."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Mapping):
        entries = sorted((canonical(key), canonical(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in entries) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(canonical, value))) + "}" if value else "set()"
    if isinstance(value, list):
        return f"[{', '.join(map(canonical, value))}]"
    return repr(value)


def _typed_like(current: Any, value: Any, name: str) -> Any:
    require(
        isinstance(value, type(current)),
        f"Unexpected type {type(value).__name__} for option {name}. Expected {type(current).__name__}.",
    )
    # An IntEnum is an int, but two options that hold the same number have to look the same.
    return int(value) if type(current) is int else value
