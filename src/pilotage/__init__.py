"""Guides a PyTorch model onto an accelerator, runs it there as one compiled program, and proves that it arrived.

Importing it is cheap: torch is imported when a name below is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pilotage.errors import PilotageError
from pilotage.missing_torch import torch_needed_by as _torch_needed_by
from pilotage.version import VERSION

if TYPE_CHECKING:
    from pilotage.capture.loss.search import mark_loss
    from pilotage.data.epochs import Epochs
    from pilotage.data.normalized import Normalized
    from pilotage.distributed.environments import world_here
    from pilotage.distributed.rendezvous import join_world
    from pilotage.distributed.single_instance import log_in_single_instance
    from pilotage.distributed.values import broadcast_value, gather_values
    from pilotage.distributed.world import World
    from pilotage.door import CompiledModel, batches, inference, record_of, training
    from pilotage.options.locations import Locations
    from pilotage.program.graphs.forward_marks import keep_for_backward
    from pilotage.program.graphs.origins import enter_stage
    from pilotage.progress import has_display, progress_bar
    from pilotage.whole_files import write_whole

__version__ = VERSION

__all__ = [
    "CompiledModel",
    "Epochs",
    "Locations",
    "Normalized",
    "PilotageError",
    "World",
    "batches",
    "broadcast_value",
    "enter_stage",
    "exchange_timeout",
    "explained_exchange",
    "gather_values",
    "has_display",
    "inference",
    "join_world",
    "keep_for_backward",
    "log_in_single_instance",
    "mark_loss",
    "progress_bar",
    "record_of",
    "training",
    "world_here",
    "write_whole",
]

_HOMES = {
    "CompiledModel": "pilotage.door",
    "Epochs": "pilotage.data.epochs",
    "Locations": "pilotage.options.locations",
    "Normalized": "pilotage.data.normalized",
    "World": "pilotage.distributed.world",
    "batches": "pilotage.door",
    "broadcast_value": "pilotage.distributed.values",
    "enter_stage": "pilotage.program.graphs.origins",
    "exchange_timeout": "pilotage.options.environment",
    "explained_exchange": "pilotage.distributed.exchange_errors",
    "gather_values": "pilotage.distributed.values",
    "has_display": "pilotage.progress",
    "inference": "pilotage.door",
    "join_world": "pilotage.distributed.rendezvous",
    "keep_for_backward": "pilotage.program.graphs.forward_marks",
    "log_in_single_instance": "pilotage.distributed.single_instance",
    "mark_loss": "pilotage.capture.loss.search",
    "progress_bar": "pilotage.progress",
    "record_of": "pilotage.door",
    "training": "pilotage.door",
    "world_here": "pilotage.distributed.environments",
    "write_whole": "pilotage.whole_files",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        from pilotage.options.suggestions import did_you_mean

        hint = "" if name.startswith("_") else did_you_mean(name, _HOMES)
        raise AttributeError(f"module 'pilotage' has no attribute {name!r}.{hint}".rstrip("."))
    with _torch_needed_by(f"pilotage.{name}", distribution="pilotage"):
        return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, "__version__"]
