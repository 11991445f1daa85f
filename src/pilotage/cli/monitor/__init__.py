"""`pilotage monitor`, which is also `gc-monitor`: which devices there are, and who runs what on them."""

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
