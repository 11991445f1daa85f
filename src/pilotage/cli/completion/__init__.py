"""`pilotage completion`: scripts that complete our commands in a shell."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.completion.running import add_arguments, run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="completion",
    summary="Print a script that completes our commands in bash, zsh or fish.",
    add_arguments=add_arguments,
    run=run,
)
