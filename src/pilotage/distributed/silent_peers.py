"""Find out which processes did not take part in a failed exchange."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch.distributed as dist

from pilotage.distributed.world import World
from pilotage.torch_private import get_default_store

GRACE = 5.0
"""Seconds within which all waiting processes notice the failure; gloo notifies most of them at once."""

_MARK = "pilotage present"


def mark_present(world: World) -> None:
    """Mark this process as a participant of the failed exchange."""
    if dist.is_initialized():
        _ask_store(lambda store: store.set(_mark(world.process), ""))


def silent_peers(world: World, group: dist.ProcessGroup | None) -> list[str]:
    """The names of the processes of a group without a mark, which never reached the exchange."""
    if not dist.is_initialized():
        return []
    others = [process for process in dist.get_process_group_ranks(group) if process != world.process]
    if len(others) > 1:
        others = _ask_store(lambda store: _absent_from(store, others))
    return [world.name_of(process) for process in others]


def _absent_from(store: Any, processes: list[int]) -> list[int]:
    end = time.monotonic() + GRACE
    while processes and time.monotonic() < end:
        processes = [process for process in processes if not store.check([_mark(process)])]
        time.sleep(0.05)
    return processes


def _ask_store(ask: Callable[[Any], list[int] | None]) -> list[int]:
    """Ask the store of the first process; without an answer, that process is silent."""
    found: list[list[int]] = []

    def answered() -> None:
        # The store ends with the first process.
        with suppress(RuntimeError):
            found.append(ask(get_default_store()) or [])

    asking = threading.Thread(target=answered, daemon=True)
    asking.start()
    asking.join(2 * GRACE)
    return found[0] if found else [0]


def _mark(process: int) -> str:
    return f"{_MARK} {process}"
