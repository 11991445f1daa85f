"""The connection to the other instances."""

from __future__ import annotations

from pathlib import Path

import torch.distributed

from pilotage.engine import Peers, leave
from popdist._environment import world_here


def peers() -> Peers:
    """The other instances, which are met at the first exchange."""
    return Peers(world=world_here())


def init() -> None:
    """Meet the other instances; to be called before `popdist.poptorch.Options` is made."""
    initializeBackend()


def initializeBackend() -> None:
    """Meet the other instances; alone there is nothing to do."""
    if world_here().processes > 1:
        peers().join()


def finalizeBackend() -> None:
    """Part from the other instances; happens by itself at the end of the process."""
    leave()


def isBackendInitialized() -> bool:
    """Whether the other instances have been met; alone they always have."""
    return world_here().processes == 1 or torch.distributed.is_initialized()


def registerDefaultBackend() -> None:
    """Choose how instances talk: torch.distributed, which they do anyway."""


def registerBackend(library: str | Path) -> None:
    """Refuse: instances talk by torch.distributed, and a library for Poplar's SDK cannot be put in its place."""
    raise RuntimeError(
        f"The backend {str(library)!r} cannot be registered: instances talk by torch.distributed (gloo, nccl). Leave "
        "registerBackend out, or call registerDefaultBackend()."
    )
