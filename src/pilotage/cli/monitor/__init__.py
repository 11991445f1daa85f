"""`pilotage monitor` and `gc-monitor`: show devices and the programs that run on them."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.monitor.arguments import add_arguments
from pilotage.cli.monitor.watching import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="monitor",
    summary="Show the devices of this machine, and your processes that run programs on them.",
    add_arguments=add_arguments,
    run=run,
)
