"""Starts and stops the vendor's trace, which does not exist here."""

from __future__ import annotations

from habana_frameworks._emulation.traces import say_that_there_are_none


def start() -> None:
    """Log once that no trace is written."""
    say_that_there_are_none()


def stop() -> None:
    """Do nothing."""


def flush() -> None:
    """Do nothing."""
