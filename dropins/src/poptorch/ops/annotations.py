"""Annotations of operations for IPU profiles; they do not change what is computed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pilotage.engine import in_scope
from poptorch._errors import require

_attributes: ContextVar[Mapping[str, Mapping[str, Any]]] = ContextVar(
    "poptorch_attributes", default=MappingProxyType({})
)


def present_attributes() -> Mapping[str, Mapping[str, Any]]:
    """The attributes that `Attribute` currently gives to operations."""
    return _attributes.get()


def set_attribute(attribute: str, key: str, value: Any) -> None:
    """Give the following operations an attribute."""
    before = _attributes.get()
    _attributes.set({**before, attribute: {**before.get(attribute, {}), key: value}})


def clear_attribute(attribute: str, key: str) -> None:
    """Give the following operations no such attribute."""
    before = _attributes.get()
    kept = {name: value for name, value in before.get(attribute, {}).items() if name != key}
    _attributes.set({**before, attribute: kept})


class NameScope:
    """Groups the operations of a ``with`` block under a name, which ``getTensorNames`` shows."""

    def __init__(self, name: str) -> None:
        require(isinstance(name, str), f"The name of a poptorch.NameScope must be a string, not {name!r}.")
        self.name = name
        self._entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> Self:
        scope = in_scope(self.name)
        scope.__enter__()
        self._entered.append(scope)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)


class Attribute:
    """Gives the operations of a ``with`` block attributes, such as ``__outline={"layer": "embedding"}``."""

    def __init__(self, **attributes: Mapping[str, Any]) -> None:
        for name, values in attributes.items():
            require(isinstance(values, Mapping), f"The attribute {name} must be a dictionary, not {values!r}.")
        self._given = attributes
        self._tokens: list[Token[Mapping[str, Mapping[str, Any]]]] = []

    def __enter__(self) -> Self:
        before = _attributes.get()
        added = {name: {**before.get(name, {}), **values} for name, values in self._given.items()}
        self._tokens.append(_attributes.set({**before, **added}))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _attributes.reset(self._tokens.pop())
