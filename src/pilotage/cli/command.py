"""The seam between the command line and one command of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Command"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One word after `pilotage`."""

    name: str

    summary: str
    """One line for `pilotage --help`."""

    add_arguments: Callable[[ArgumentParser], None]
    """Declares the options of the command."""

    run: Callable[[Namespace], int]
    """Does the work and returns the exit code; what it needs it imports when it runs, so that help stays quick."""
