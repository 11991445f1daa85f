"""Log lines from only one of the instances."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from pilotage.distributed.environments import world_from

__all__ = ["SingleInstance", "is_instance", "log_in_single_instance"]


def is_instance(instance: int = 0, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process represents an instance: its first stage, or the only process."""
    world = world_from(environment)
    return world is None or (world.rank == instance and not world.stage)


def log_in_single_instance(
    message: str, *, level: int = logging.INFO, instance: int = 0, logger: logging.Logger | None = None
) -> None:
    """Log a line in one of the instances that call this."""
    if is_instance(instance):
        (logger or logging.getLogger()).log(level, message)


class SingleInstance(logging.Filter):
    """Passes the lines of one instance: ``logging.getLogger().handlers[0].addFilter(SingleInstance())``."""

    def __init__(self, instance: int = 0) -> None:
        super().__init__()
        self._passes = is_instance(instance)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the line in this process."""
        return self._passes
