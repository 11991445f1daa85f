"""The vendor's older profiler, whose traces do not exist here."""

from __future__ import annotations

from habana_frameworks._emulation.traces import say_that_there_are_none


class ProfilerApi:
    """Starts and stops the vendor's trace."""

    @staticmethod
    def setup_profiler() -> None:
        """Log once that no trace is written."""
        say_that_there_are_none()

    @staticmethod
    def start_profiler() -> None:
        """Log once that no trace is written."""
        say_that_there_are_none()

    @staticmethod
    def stop_profiler() -> None:
        """Do nothing."""
