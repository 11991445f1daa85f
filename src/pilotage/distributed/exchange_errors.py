"""What torch.distributed says about an exchange that failed, turned into what can be done about it."""

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
    """Raises `DistributedError` in place of torch's errors; it names those of the group that did not come."""

    world: World
    doing: str
    port: int | None = None
    group: dist.ProcessGroup | None = None
    exchanges_only: bool = True
    """Whether nothing but an exchange is done; where more is, errors that do not speak of one pass."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, RuntimeError) or isinstance(error, DistributedError):
            return
        if self.exchanges_only or isinstance(error, dist.DistError) or _remedy(str(error)):
            mark_present(self.world)
            raise DistributedError(self._explanation(str(error))) from error

    def _explanation(self, text: str) -> str:
        who = f"{self.world.label} ({socket.gethostname()}) failed in {self.doing}"
        remedy = _remedy(text)
        if remedy is None:
            return f"{who}.\n{text.strip()}"
        place = f" at {self.world.address}:{self.port}" if self.port is not None else ""
        return f"{who}{place}: {remedy(self.world, self.group)}\n{text.strip()}"


def explained_exchange(world: World, doing: str) -> AbstractContextManager[None]:
    """Say which processes did not come where torch's own exchange fails inside; other errors pass as they are."""
    return ExplainedErrors(world, doing, exchanges_only=False)


Remedy = Callable[[World, dist.ProcessGroup | None], str]


def _remedy(text: str) -> Remedy | None:
    return next((remedy for told, remedy in _REMEDIES if told(text)), None)


def _mentions(*phrases: str) -> Callable[[str], bool]:
    return lambda text: any(phrase in text.lower() for phrase in phrases)


def _silence(world: World, group: dist.ProcessGroup | None) -> str:
    names = " and ".join(silent_peers(world, group))
    if not names:
        return "another instance stays silent. Look for one that hangs, or that ran fewer calls than this one."
    return f"{names} did not come to it. Look there for what hangs, or for fewer calls than here."


def _loss(world: World, group: dist.ProcessGroup | None) -> str:
    # CollectiveGroup may wait for it still, and cannot be told from it.
    names = " or ".join(silent_peers(world, group))
    who = f"another instance is gone: {names}" if names else "another instance is gone"
    return f"{who}. Its own output says why; this one cannot go on without it."


_REMEDIES: tuple[tuple[Callable[[str], bool], Remedy], ...] = (
    (_mentions("address already in use", "eaddrinuse"), lambda *_: "the port is taken. Set MASTER_PORT to a free one."),
    (_mentions("timed out", "timeout", "did not respond", "failed to pass monitoredbarrier"), _silence),
    (_mentions("connection closed", "connection reset", "broken pipe", "econnreset", "recverror", "read error"), _loss),
)
