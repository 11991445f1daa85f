"""`pilotage doctor`: examine this machine, and say what works and how to fix the rest."""

from __future__ import annotations

from pilotage.cli.doctor.running import COMMAND

__all__ = ["COMMAND"]
