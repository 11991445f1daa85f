"""`pilotage scan`: what a port of a repository would meet."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.scan.running import add_arguments, run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="scan",
    summary="Show what a port of a repository would meet, how much of it is automatic, and where to begin.",
    add_arguments=add_arguments,
    run=run,
)
