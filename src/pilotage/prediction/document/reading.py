"""Turn plain data into values of the document, with one error that names the wrong field.

The fields and types of the dataclasses are the only description of the document.
"""

from __future__ import annotations

import math
import types
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pilotage.errors import ReportError

__all__ = ["AtLeast", "require", "value_of"]

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The smallest number that a field allows."""

    bound: float


def require(holds: bool, problem: str) -> None:
    """Raise if a rule between the fields of a value does not hold."""
    if not holds:
        raise ReportError(problem)


def value_of(kind: type[_Value], data: Any, where: str = "") -> _Value:
    """A dataclass from a dictionary of plain data; ``where`` is its place in the document, for errors."""
    known = _fields(cast(Hashable, kind))
    if not isinstance(data, Mapping):
        raise _wrong(where, data, "a table with the fields " + ", ".join(known))
    unknown = [key for key in data if key not in known]
    if unknown:
        allowed = ", ".join(known)
        raise ReportError(f"The report has an unknown field {_inside(where, str(unknown[0]))}. Allowed are: {allowed}.")
    given = {}
    for name, (field, hint) in known.items():
        if name in data:
            given[name] = _read(hint, data[name], _inside(where, name))
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ReportError(f"The report lacks the field {_inside(where, name)}.")
    try:
        return kind(**given)
    except ReportError as error:
        raise ReportError(f"The report is inconsistent at {where or 'its top'}: {error}.") from None


@cache
def _fields(kind: Any) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: (each, hints[each.name]) for each in fields(kind)}


def _read(hint: Any, data: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin is Annotated:
        return _bounded(hint, data, where)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        (only,) = [each for each in get_args(hint) if each is not type(None)]
        return _read(only, data, where)
    if origin is Literal:
        if data not in get_args(hint):
            raise _wrong(where, data, " or ".join(map(repr, get_args(hint))))
        return data
    if origin is tuple:
        if not isinstance(data, list | tuple):
            raise _wrong(where, data, "a list")
        return tuple(_read(get_args(hint)[0], each, f"{where}[{place}]") for place, each in enumerate(data))
    if origin is Mapping:
        if not isinstance(data, Mapping) or not all(isinstance(key, str) for key in data):
            raise _wrong(where, data, "a table")
        return {key: _read(get_args(hint)[1], each, _inside(where, key)) for key, each in data.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return value_of(hint, data, where)
    return _plain(hint, data, where)


def _bounded(hint: Any, data: Any, where: str) -> Any:
    kind, limit = get_args(hint)
    value = _plain(kind, data, where)
    if value < limit.bound:
        raise _wrong(where, data, f"{_NAMES[kind]} of at least {limit.bound:g}")
    return value


_NAMES = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}


def _plain(kind: Any, data: Any, where: str) -> Any:
    if kind is float and type(data) is int:
        # Numbers beyond the largest float would raise.
        return float(data) if abs(data) < 2**1000 else _refuse(where, data, kind)
    if type(data) is not kind or (kind is float and not math.isfinite(data)):
        _refuse(where, data, kind)
    return data


def _refuse(where: str, data: Any, kind: Any) -> Any:
    raise _wrong(where, data, _NAMES[kind])


def _wrong(where: str, given: Any, allowed: str) -> ReportError:
    shown = repr(given)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
    return ReportError(f"The report has {shown} as {where or 'its content'}. Expected {allowed}.")


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
