"""Lines that only one of the instances writes."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from pilotage.distributed.environments import world_from

__all__ = ["SingleInstance", "is_instance", "log_in_single_instance"]


def is_instance(instance: int = 0, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process speaks for an instance: alone it does, and of the stages of an instance the first."""
    world = world_from(environment)
    return world is None or (world.rank == instance and not world.stage)


def log_in_single_instance(
    message: str, *, level: int = logging.INFO, instance: int = 0, logger: logging.Logger | None = None
) -> None:
    """Log a line in one of the instances, where all of them call this."""
    if is_instance(instance):
        (logger or logging.getLogger()).log(level, message)


class SingleInstance(logging.Filter):
    """Lets the lines of one instance through: ``logging.getLogger().handlers[0].addFilter(SingleInstance())``."""

    def __init__(self, instance: int = 0) -> None:
        super().__init__()
        self._speaks = is_instance(instance)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written here."""
        return self._speaks
