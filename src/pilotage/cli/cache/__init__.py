"""`pilotage cache`: which compiled code is kept, whether it is intact, and how to get rid of it."""

from __future__ import annotations

from pilotage.cli.cache.arguments import add_arguments
from pilotage.cli.cache.running import run
from pilotage.cli.command import Command

__all__ = ["COMMAND"]

COMMAND = Command(
    name="cache",
    summary="List, check and clear the compiled code that is kept on disk.",
    add_arguments=add_arguments,
    run=run,
)
