"""`pilotage report`: a prediction or a profile as a page to look at."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.report.arguments import add_arguments
from pilotage.cli.report.running import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="report",
    summary="Show a prediction or a profile as a page, or two of them side by side.",
    add_arguments=add_arguments,
    run=run,
)
