"""The connection to the other instances."""

from __future__ import annotations

from pathlib import Path

import torch.distributed

from pilotage.engine import Peers, leave
from popdist._environment import world_here


def peers() -> Peers:
    """The other instances; the connection is made at the first exchange."""
    return Peers(world=world_here())


def init() -> None:
    """Connect to the other instances; call it before creating `popdist.poptorch.Options`."""
    initializeBackend()


def initializeBackend() -> None:
    """Connect to the other instances, if there are any."""
    if world_here().processes > 1:
        peers().join()


def finalizeBackend() -> None:
    """Disconnect from the other instances; this also happens at the end of the process."""
    leave()


def isBackendInitialized() -> bool:
    """Whether the other instances are connected; True for a single instance."""
    return world_here().processes == 1 or torch.distributed.is_initialized()


def registerDefaultBackend() -> None:
    """Do nothing: instances always communicate by torch.distributed."""


def registerBackend(library: str | Path) -> None:
    """Raise RuntimeError: instances communicate by torch.distributed, which a library for Poplar cannot replace."""
    raise RuntimeError(
        f"The backend {str(library)!r} cannot be registered: instances communicate by torch.distributed (gloo, nccl). "
        "Remove registerBackend, or call registerDefaultBackend()."
    )
