"""Names of PopART that programs touch before training: enums for ``Options()._Popart.set``, versions, logging, errors.

Pilotage serves this package only if no PopART is installed. It has only these names: building and running PopART's
graphs raises.
"""

from __future__ import annotations

import logging
from typing import NoReturn

from popart.enums import *  # noqa: F403
from popart.enums import __all__ as _enums
from popart.errors import (
    popart_exception,
    popart_internal_exception,
    popart_runtime_error,
    poplar_exception,
    poplibs_exception,
)
from popart.graphs import (
    Builder,
    DataFlow,
    DeviceManager,
    InferenceSession,
    OptimizerValue,
    Patterns,
    PyStepIO,
    SessionOptions,
    TrainingSession,
)

__all__ = [
    "Builder",
    "DataFlow",
    "DeviceManager",
    "InferenceSession",
    "OptimizerValue",
    "Patterns",
    "PyStepIO",
    "SessionOptions",
    "TrainingSession",
    "__version__",
    "getLogger",
    "packageHash",
    "popart_exception",
    "popart_internal_exception",
    "popart_runtime_error",
    "poplar_exception",
    "poplibs_exception",
    "versionNumber",
    "versionString",
    *_enums,
]

__version__ = "3.4.0"

__pilotage_facade__ = True
"""Errors name the user's own line, and none of this package."""


def versionString() -> str:
    """The version of the SDK whose names these are."""
    return f"{__version__} (Pilotage)"


def versionNumber() -> tuple[int, int, int]:
    """The version as numbers."""
    return (3, 4, 0)


def packageHash() -> str:
    """Which build this is: none of Graphcore's."""
    return "pilotage"


class _Logger(logging.LoggerAdapter[logging.Logger]):
    """A logger that also takes PopART's names of levels."""

    def setLevel(self, level: int | str) -> None:
        """Show messages of this level and above: TRACE, DEBUG, INFO, WARN, ERR, CRITICAL or OFF."""
        names: dict[int | str, int | str] = {
            "TRACE": 5,
            "WARN": "WARNING",
            "ERR": "ERROR",
            "OFF": logging.CRITICAL + 10,
        }
        self.logger.setLevel(names.get(level, level))

    def warn(self, msg: object, *args: object, **kwargs: object) -> None:
        """Log a warning."""
        self.logger.warning(msg, *args)

    def err(self, msg: object, *args: object) -> None:
        """Log an error."""
        self.logger.error(msg, *args)


def getLogger(name: str = "session") -> _Logger:
    """Python's logger for a part of PopART."""
    return _Logger(logging.getLogger(f"popart:{name}"), {})


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"popart.{name} is not available: Pilotage has only the names of PopART that programs use before training "
        "(enums, versions, errors, getLogger)."
    )
