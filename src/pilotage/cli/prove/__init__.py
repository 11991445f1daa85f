"""`pilotage prove`: run an original and its port, and show whether they train the same."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.prove.arguments import add_arguments
from pilotage.cli.prove.running import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="prove",
    summary="Run an original and its port, and show whether they train the same.",
    add_arguments=add_arguments,
    run=run,
)
