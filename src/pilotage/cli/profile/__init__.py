"""`pilotage profile`: run a script for some updates, and show where its time and memory go."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.profile.arguments import add_arguments
from pilotage.cli.profile.running import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="profile",
    summary="Run a script for some updates, and show where its time and memory go.",
    add_arguments=add_arguments,
    run=run,
)
