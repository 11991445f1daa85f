"""Who stays silent in an exchange."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

from pilotage.distributed.world import World

GRACE = 5.0
"""Seconds in which all that have waited in vain find out; gloo tells most of them at once."""

_MARK = "pilotage gave up"


def mark_present(world: World) -> None:
    """Leave a mark for the others: this process has come to the exchange that failed."""
    if dist.is_initialized():
        _in_time(lambda store: store.set(_mark(world.process), ""))


def silent_peers(world: World, group: dist.ProcessGroup | None) -> list[str]:
    """Call by name those of a group that have left no mark, and so have never come to the exchange."""
    if not dist.is_initialized():
        return []
    others = [process for process in dist.get_process_group_ranks(group) if process != world.process]
    if len(others) > 1:
        others = _in_time(lambda store: _absent_from(store, others))
    return [world.name_of(process) for process in others]


def _absent_from(store: Any, processes: list[int]) -> list[int]:
    end = time.monotonic() + GRACE
    while processes and time.monotonic() < end:
        processes = [process for process in processes if not store.check([_mark(process)])]
        time.sleep(0.05)
    return processes


def _in_time(ask: Callable[[Any], list[int] | None]) -> list[int]:
    """Ask the store, which the first process keeps: where there is no answer, that one is silent."""
    found: list[list[int]] = []

    def answered() -> None:
        # It goes with the first process.
        with suppress(RuntimeError):
            found.append(ask(_get_default_store()) or [])

    asking = threading.Thread(target=answered, daemon=True)
    asking.start()
    asking.join(2 * GRACE)
    return found[0] if found else [0]


def _mark(process: int) -> str:
    return f"{_MARK} {process}"
