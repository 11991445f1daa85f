"""`pilotage doctor`: what this machine has, what fits, and what to do about what does not."""

from __future__ import annotations

from pilotage.cli.doctor.consultation import COMMAND

__all__ = ["COMMAND"]
