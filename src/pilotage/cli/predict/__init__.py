"""`pilotage predict`: whether a program fits a device, and how fast it would run there."""

from __future__ import annotations

from pilotage.cli.command import Command
from pilotage.cli.predict.arguments import add_arguments
from pilotage.cli.predict.running import run

__all__ = ["COMMAND"]

COMMAND = Command(
    name="predict",
    summary="Predict whether a script's program fits a device, and how fast it would run there.",
    add_arguments=add_arguments,
    run=run,
)
