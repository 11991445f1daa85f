"""How to start the process that loads data, and how it gets the data set."""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import pickle
from collections.abc import Callable, Sequence
from enum import Enum
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar, cast

import torch.multiprocessing  # noqa: F401  # teaches multiprocessing to send tensors

from pilotage.errors import FetchStartError


class SharingMode(Enum):
    """How a background process is started and gets the data set."""

    SHARED_MEMORY = "shared_memory"
    """A new interpreter; the data set's tensors move to shared memory, which both processes use."""
    FILE_SYSTEM = "file_system"
    """A new interpreter with a copy of the data set; the ring is in a temporary file, not in memory."""
    FORK = "fork"
    """A fork, which starts at once and inherits everything. Not for programs with locks in other threads."""
    FORK_SERVER = "fork_server"
    """A fork of a clean server process, with a copy of the data set."""

    @property
    def start_method(self) -> str:
        """The start method of multiprocessing."""
        return {"fork": "fork", "fork_server": "forkserver"}.get(self.value, "spawn")

    @property
    def ring_on_disk(self) -> bool:
        """Whether items are passed through a file on disk instead of memory."""
        return self is SharingMode.FILE_SYSTEM


def start_process(
    sharing_mode: SharingMode, target: Callable[..., None], task: object, *, preload: Sequence[str], name: str
) -> tuple[BaseProcess, Connection]:
    """Start ``target(connection, task, other_end)`` in a new process; returns it and our end of the connection.

    ``other_end`` is our end if the new process inherits it and has to close its copy, otherwise None. The fork server
    imports the modules in ``preload`` once for all processes.
    """
    context = multiprocessing.get_context(sharing_mode.start_method)
    if sharing_mode is SharingMode.FORK_SERVER:
        context.set_forkserver_preload(["__main__", *preload])
    ours, theirs = context.Pipe()
    inherited = ours if sharing_mode is SharingMode.FORK else None
    carried = by_value(task) if sharing_mode in (SharingMode.FORK_SERVER, SharingMode.FILE_SYSTEM) else task
    try:
        process = _process(context, target, (theirs, carried, inherited), name)
        process.start()
    except BaseException as error:
        ours.close()
        if isinstance(error, Exception):
            raise FetchStartError(_start_failure(sharing_mode, error)) from error
        raise
    finally:
        theirs.close()
    return process, ours


def _process(context: BaseContext, target: Callable[..., None], arguments: tuple[Any, ...], name: str) -> BaseProcess:
    # Not a daemon: daemons cannot have child processes, but a loader may have workers.
    process: BaseProcess = context.Process(target=target, args=arguments, name=name, daemon=False)  # type: ignore[attr-defined]
    return process


_Content = TypeVar("_Content")


def by_value(content: _Content) -> _Content:
    """Wrap an object so that another process receives a copy of it, including any number of tensors."""
    return cast(_Content, _ByValue(content))


class _ByValue:
    """Pickles as its content, with tensors as bytes."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        buffer = io.BytesIO()
        pickler = ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL)
        # Without torch's reductions a tensor is sent as bytes and needs no file descriptor.
        pickler.dispatch_table = {
            kind: reduction
            for kind, reduction in pickler.dispatch_table.items()
            if not kind.__module__.startswith("torch")
        }
        pickler.dump(self._content)
        return pickle.loads, (buffer.getvalue(),)


def _start_failure(sharing_mode: SharingMode, error: Exception) -> str:
    if sharing_mode is SharingMode.FORK:
        return f"The process that loads data could not be forked: {error}"
    if os.strerror(errno.EMFILE) in str(error):
        return (
            "The process that loads data could not be started: sharing each of the data set's tensors needs an open "
            "file, and there are too many. Choose another sharing mode than SharingMode.SHARED_MEMORY."
        )
    return (
        f"The process that loads data could not be started: {type(error).__name__}: {error}. The data set must be "
        "picklable: classes and functions at the top level of a module, no lambdas. "
        "SharingMode.FORK needs no pickling."
    )
