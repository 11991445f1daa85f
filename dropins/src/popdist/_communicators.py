"""Groups of instances that communicate among themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import torch.distributed as dist

from popdist._backend import peers
from popdist._environment import world_here

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Communicator:
    """A group of instances, in ascending order."""

    members: tuple[int, ...]
    group: dist.ProcessGroup | None
    """None for all instances, and for a single one."""


_BY_ID: dict[int, Communicator] = {}
"""Registered communicators; PopDist keeps them for the whole process."""

_BY_MEMBERS: dict[tuple[int, ...], Communicator] = {}
_PRESENT: ContextVar[Communicator | None] = ContextVar("present_communicator", default=None)


def registerCommunicator(participants: Iterable[int], id: int) -> None:
    """Register a group of instances under an id; all instances must call this, in the same order."""
    members = _checked(participants)
    known = _BY_ID.get(id)
    if known is not None and known.members != members:
        raise RuntimeError(
            f"The communicator {id} has the participants {list(known.members)}, so it cannot be registered for "
            f"{list(members)}. Choose another id."
        )
    among = _among(members)
    if world_here().rank in members:
        _BY_ID[id] = among


def execute_on_instances(
    instances: Iterable[int], func: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result | None:
    """Call a function in some instances only, and return its result there; its collectives involve only these.

    All instances must call this; the others return None at once.
    """
    among = _among(_checked(instances))
    if world_here().rank not in among.members:
        return None
    with _talking_among(among):
        return func(*args, **kwargs)


def communicator(id: int | None = None) -> Communicator:
    """The communicator with an id, or that of the surrounding `execute_on_instances`, or all instances."""
    if id is not None:
        if id not in _BY_ID:
            raise RuntimeError(
                f"Instance {world_here().rank} has no communicator {id}. Call popdist.registerCommunicator in "
                "every instance first."
            )
        return _BY_ID[id]
    return _PRESENT.get() or _among(tuple(range(world_here().size)))


def _among(members: tuple[int, ...]) -> Communicator:
    if members not in _BY_MEMBERS:
        _BY_MEMBERS[members] = Communicator(members, _group(members))
    return _BY_MEMBERS[members]


def _group(members: tuple[int, ...]) -> dist.ProcessGroup | None:
    if len(members) in (1, world_here().size):
        return None
    return peers().group_among(members)


def _checked(instances: Iterable[int]) -> tuple[int, ...]:
    members, size = tuple(sorted(set(instances))), world_here().size
    if not members or members[0] < 0 or members[-1] >= size:
        raise RuntimeError(
            f"The instances {list(members)} do not all exist: this job has instances 0 to {size - 1}. Name at least "
            "one of them."
        )
    return members


@contextmanager
def _talking_among(present: Communicator) -> Iterator[Any]:
    token = _PRESENT.set(present)
    try:
        yield
    finally:
        _PRESENT.reset(token)
