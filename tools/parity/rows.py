"""One row for each public name of PopTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["Row", "Sort", "Status", "Table", "arguments", "rows"]


class Status(Enum):
    """The status of a name."""

    WORKS = "works"
    DIFFERS = "works differently"
    LATER = "later"
    ABSENT = "absent"


class Sort(Enum):
    """What the names of a table are."""

    ATTRIBUTES = "attributes"
    """Of a package, a class or an object."""
    ARGUMENTS = "arguments"
    """Of functions and classes, as ``function(argument)``."""
    VARIABLES = "environment variables"
    BEHAVIOURS = "behaviours"
    """Sentences about what happens."""


@dataclass(frozen=True, slots=True)
class Row:
    """A name, its status, and how it differs or why it is absent."""

    name: str
    status: Status
    remark: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Names that belong together."""

    title: str
    of: str = "poptorch"
    """What has the names: the package, or one of its classes."""

    sort: Sort = Sort.ATTRIBUTES
    rows: tuple[Row, ...]


def rows(
    *,
    works: str = "",
    noted: Mapping[str, str] | None = None,
    differs: Mapping[str, str] | None = None,
    later: Mapping[str, str] | None = None,
    absent: Mapping[str, str] | None = None,
) -> tuple[Row, ...]:
    """Rows of each status; names that work are parted by blanks, or noted with a remark."""
    remarked = {
        Status.WORKS: noted or {},
        Status.DIFFERS: differs or {},
        Status.LATER: later or {},
        Status.ABSENT: absent or {},
    }
    return (
        *(Row(name, Status.WORKS) for name in works.split()),
        *(Row(name, status, remark) for status, remarks in remarked.items() for name, remark in remarks.items()),
    )


def arguments(of: Mapping[str, str], differs: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Rows for the arguments of functions; names are parted by blanks."""
    named = (f"{function}({name})" for function, names in of.items() for name in names.split())
    return (*(Row(name, Status.WORKS) for name in named), *rows(differs=differs))
