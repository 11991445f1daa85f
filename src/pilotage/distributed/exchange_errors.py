"""Turn torch.distributed's errors into messages that name the missing processes and what to do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

import torch.distributed as dist

from pilotage.distributed.silent_peers import mark_present, silent_peers
from pilotage.distributed.world import World
from pilotage.errors import DistributedError


@dataclass(slots=True)
class ExplainedErrors(AbstractContextManager[None]):
    """Raises `DistributedError` instead of torch's errors, with the processes that did not take part."""

    world: World
    action: str
    port: int | None = None
    group: dist.ProcessGroup | None = None
    exchanges_only: bool = True
    """Whether the block only exchanges data; otherwise errors that do not mention an exchange pass unchanged."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, RuntimeError) or isinstance(error, DistributedError):
            return
        if self.exchanges_only or isinstance(error, dist.DistError) or _remedy(str(error)):
            mark_present(self.world)
            raise DistributedError(self._explanation(str(error))) from error

    def _explanation(self, text: str) -> str:
        who = f"{self.world.label} ({socket.gethostname()}) failed in {self.action}"
        remedy = _remedy(text)
        if remedy is None:
            return f"{who}.\n{text.strip()}"
        place = f" at {self.world.address}:{self.port}" if self.port is not None else ""
        return f"{who}{place}: {remedy(self.world, self.group)}\n{text.strip()}"


def explained_exchange(world: World, action: str) -> AbstractContextManager[None]:
    """Name the processes that did not take part if an exchange of torch's fails inside; other errors pass unchanged."""
    return ExplainedErrors(world, action, exchanges_only=False)


Remedy = Callable[[World, dist.ProcessGroup | None], str]


def _remedy(text: str) -> Remedy | None:
    return next((remedy for matches, remedy in _REMEDIES if matches(text)), None)


def _mentions(*phrases: str) -> Callable[[str], bool]:
    return lambda text: any(phrase in text.lower() for phrase in phrases)


def _silent_instances(world: World, group: dist.ProcessGroup | None) -> str:
    names = " and ".join(silent_peers(world, group))
    if not names:
        return "another instance is silent. Look for one that hangs or made fewer calls than this one."
    return f"{names} did not take part. Check whether it hangs or made fewer calls."


def _lost_instances(world: World, group: dist.ProcessGroup | None) -> str:
    # Processes that still wait for it look the same.
    names = " or ".join(silent_peers(world, group))
    who = f"another instance is gone: {names}" if names else "another instance is gone"
    return f"{who}. Its own output says why; this instance cannot continue without it."


_REMEDIES: tuple[tuple[Callable[[str], bool], Remedy], ...] = (
    (
        _mentions("address already in use", "eaddrinuse"),
        lambda *_: "the port is in use. Set MASTER_PORT to a free one.",
    ),
    (_mentions("timed out", "timeout", "did not respond", "failed to pass monitoredbarrier"), _silent_instances),
    (
        _mentions("connection closed", "connection reset", "broken pipe", "econnreset", "recverror", "read error"),
        _lost_instances,
    ),
)
