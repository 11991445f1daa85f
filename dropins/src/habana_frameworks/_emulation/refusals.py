"""Errors for parts of the vendor's software that the emulation does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def missing_module(name: str, reason: str) -> ModuleNotFoundError:
    """The error for a module that is missing here on purpose; programs that test for it take their other path."""
    return ModuleNotFoundError(f"The emulated Gaudi has no {name}: {reason}", name=name)


def refusing(name: str, reason: str) -> Callable[..., NoReturn]:
    """Make a function that raises NotImplementedError with a reason."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"The emulated Gaudi has no {name}: {reason}")

    refuse.__name__ = name.rpartition(".")[2]
    refuse.__doc__ = f"Not available: {reason}"
    return refuse
