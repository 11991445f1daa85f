"""The error for a loader without a single batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilotage.errors import OptionError

_REMEDY = "Use a smaller batch size, fewer device iterations, replicas or accumulation steps, or more data."


def empty_loader_error(
    *, items: int | None, own_items: int | None, combined: int | None, micro_batches: int = 1, processes: int = 1
) -> OptionError:
    """The error, with as many details as are known.

    ``items`` is the size of the data set, ``own_items`` the number of items that this process reads, and ``combined``
    the size of one combined batch.
    """
    if items == 0:
        return OptionError("The loader yields no batches: the data set has 0 items. Check where the data comes from.")
    found = "the data set yields too few items" if items is None else f"the data set has {_counted(items)}"
    if processes > 1:
        found += f" for {processes} processes"
    if own_items is not None and own_items != items:
        found += f", this process reads {own_items} of them"
    if combined is None:
        return OptionError(f"The loader yields no batches: {found}, but its sampler yields nothing. Check the sampler.")
    size = (
        f"{combined} = {combined // micro_batches} x {micro_batches} micro-batches" if micro_batches > 1 else combined
    )
    return OptionError(f"The loader yields no batches: {found}, but one combined batch takes {size}. {_REMEDY}")


def require_one(batches: Iterator[Any], error: OptionError) -> Iterator[Any]:
    """The same batches; raises if there are none."""
    nothing = object()
    first = next(batches, nothing)
    if first is nothing:
        raise error
    yield first
    yield from batches


def _counted(items: int) -> str:
    return f"{items} item{'' if items == 1 else 's'}"
