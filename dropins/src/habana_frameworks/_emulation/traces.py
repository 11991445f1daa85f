"""Traces of the vendor's own layers, which do not exist here."""

from __future__ import annotations

from functools import cache

from pilotage.engine import Warned, log_event


@cache
def say_that_there_are_none() -> None:
    """Log once that no trace is written."""
    log_event(Warned(message="No Gaudi found, so the vendor's traces are empty. Use torch.profiler instead."))
