"""The mode of the bridge."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from habana_frameworks._emulation import lazy

Function = TypeVar("Function", bound=Callable[..., Any])


def is_lazy() -> bool:
    """Whether lazy mode is on."""
    return lazy.mode() == "lazy"


def lazy_only(func: Function) -> Function:
    """Make a function raise an error outside of lazy mode."""

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not is_lazy():
            raise RuntimeError(f"{func.__name__} works in lazy mode only. Set PT_HPU_LAZY_MODE=1 before the import.")
        return func(*args, **kwargs)

    return checked  # type: ignore[return-value]


class Timer:
    """Measures the seconds of a block."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self._start = 0.0

    def __enter__(self) -> Timer:
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.elapsed = time.perf_counter() - self._start
