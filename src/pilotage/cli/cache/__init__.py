"""`pilotage cache`: list, check and clear the compiled code on disk."""

from __future__ import annotations

from pilotage.cli.cache.arguments import add_arguments
from pilotage.cli.cache.running import run
from pilotage.cli.command import Command

__all__ = ["COMMAND"]

COMMAND = Command(
    name="cache",
    summary="List, check and clear the compiled code on disk.",
    add_arguments=add_arguments,
    run=run,
)
