"""`pilotage port`: turn a plain PyTorch script into one for PopTorch, PopDist, Gaudi or Pilotage."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.port.arguments import add_arguments
from pilotage.cli.port.running import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="port",
    summary="Port PyTorch scripts to PopTorch, PopDist, Gaudi or Pilotage, and prove that they train the same.",
    add_arguments=add_arguments,
    run=run,
)
