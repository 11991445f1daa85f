"""Checks plain data from a file as it is read: an untrusted file may contain anything."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from pilotage.errors import ProgramFileError

MAXIMUM_TEXT_LENGTH = 4096
MAXIMUM_ARRAY_LENGTH = 1 << 16
MAXIMUM_DEPTH = 32
"""How deep lists and tables may be nested."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}", re.ASCII)
_WRONG_FORM = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)

DTYPES: Mapping[str, torch.dtype] = {
    str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)
}


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Turn the errors of malformed data into one clear error."""
    try:
        yield
    except ProgramFileError:
        raise
    except _WRONG_FORM as error:
        raise ProgramFileError(
            f"{what} does not have the form of a program: {type(error).__name__}: {error}"
        ) from error


def invalid_value(what: str, given: Any, expected: str) -> ProgramFileError:
    """The error for an invalid value in a file."""
    shown = repr(given)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
    return ProgramFileError(f"The file contains {shown} as {what}. Expected {expected}. It was modified or is damaged.")


def table(value: Any, what: str) -> dict[str, Any]:
    """A dictionary with strings as keys."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise invalid_value(what, value, "a table")
    return value


def array(value: Any, what: str, maximum: int = MAXIMUM_ARRAY_LENGTH) -> list[Any]:
    """A list with at most ``maximum`` entries, which JSON calls an array."""
    if not isinstance(value, (list, tuple)) or len(value) > maximum:
        raise invalid_value(what, value, f"a list of at most {maximum} entries")
    return list(value)


def integer(value: Any, what: str, low: int = -(1 << 63), high: int = (1 << 63) - 1) -> int:
    """An integer within bounds."""
    if type(value) is not int or not low <= value <= high:
        raise invalid_value(what, value, f"a whole number from {low} to {high}")
    return value


def number(value: Any, what: str) -> float:
    """A number, including NaN and infinity."""
    if type(value) not in (int, float):
        raise invalid_value(what, value, "a number")
    return float(value)


def number_from_text(value: Any, what: str) -> float:
    """A number stored as text, which is exact."""
    try:
        return float(text(value, what, 64))
    except ValueError:
        raise invalid_value(what, value, "a number as text") from None


def flag(value: Any, what: str) -> bool:
    """True or False."""
    if type(value) is not bool:
        raise invalid_value(what, value, "true or false")
    return value


def text(value: Any, what: str, maximum: int = MAXIMUM_TEXT_LENGTH) -> str:
    """A line of printable text."""
    if not isinstance(value, str) or len(value) > maximum or not value.isprintable():
        raise invalid_value(what, value, f"printable text of at most {maximum} characters")
    return value


def texts(value: Any, what: str) -> tuple[str, ...]:
    """Lines of printable text."""
    return tuple(text(item, what) for item in array(value, what))


def positions(value: Any, what: str, count: int) -> tuple[int, ...]:
    """Indices into a list of ``count`` entries."""
    return tuple(integer(item, what, 0, count - 1) for item in array(value, what))


def identifier(value: Any, what: str) -> str:
    """A name that is safe in Python source."""
    if not is_identifier(value):
        raise invalid_value(what, value, "a name of ASCII letters, digits and underscores that is not a keyword")
    name: str = value
    return name


def is_identifier(value: Any) -> bool:
    """Whether a value is a name that is safe in Python source."""
    return (
        isinstance(value, str)
        and _IDENTIFIER.fullmatch(value) is not None
        and not keyword.iskeyword(value)
        and not (value.startswith("__") and value.endswith("__"))
    )


def dtype(value: Any, what: str = "a data type") -> torch.dtype:
    """A torch data type by name."""
    if not isinstance(value, str) or value not in DTYPES:
        raise invalid_value(what, value, "the name of a data type of torch")
    return DTYPES[value]
