"""The interface of a command of the command line."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Command"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One command, such as `pilotage cache`."""

    name: str

    summary: str
    """One line for `pilotage --help`."""

    add_arguments: Callable[[ArgumentParser], None]
    """Adds the options of the command to its parser."""

    run: Callable[[Namespace], int]
    """Runs the command and returns the exit code; imports what it needs only then, so that help stays quick."""
