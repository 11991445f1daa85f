"""Reads ahead of a consumer, in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PATIENCE_SECONDS = 0.1
"""How often a thread that waits for room looks whether it is still needed."""


@dataclass(frozen=True, slots=True)
class _End:
    """The source has ended, by itself or with an error."""

    error: BaseException | None


def read_ahead(source: Iterator[Any], items: int) -> Iterator[Any]:
    """The items of a source, up to ``items`` of which a thread has read before they are asked for.

    An error in the source is raised where its item would come. The thread ends with the iteration, also if that is left
    early.
    """
    waiting: queue.Queue[Any] = queue.Queue(maxsize=items)
    stopped = threading.Event()
    thread = threading.Thread(target=_read, args=(source, waiting, stopped), name="pilotage-batches", daemon=True)
    thread.start()
    try:
        while True:
            item = waiting.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        stopped.set()
        thread.join()


def _read(source: Iterator[Any], waiting: queue.Queue[Any], stopped: threading.Event) -> None:
    error: BaseException | None = None
    try:
        for item in source:
            if not _put(item, waiting, stopped):
                return
    except BaseException as raised:
        error = raised
    _put(_End(error), waiting, stopped)


def _put(item: Any, waiting: queue.Queue[Any], stopped: threading.Event) -> bool:
    while not stopped.is_set():
        try:
            waiting.put(item, timeout=_PATIENCE_SECONDS)
        except queue.Full:
            continue
        return True
    return False
