"""Logs of the vendor's layers, which do not exist here."""

from __future__ import annotations


class Logger:
    """A log of one of the vendor's layers; nothing is written to it."""

    def __init__(self, type: object) -> None:
        self.type = type


def enable_logging(logger_name: str, logger_level: object) -> None:
    """Do nothing: the vendor's layers are not here."""
