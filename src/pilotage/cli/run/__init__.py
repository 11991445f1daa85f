"""`pilotage run` and `poprun`: start several instances of a program."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.run.arguments import add_arguments
from pilotage.cli.run.running import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="run",
    summary="Start several instances of a program that train together.",
    add_arguments=add_arguments,
    run=run,
)
