"""Errors of PopTorch's Python layer, and the engine's errors under their PopTorch name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ContextDecorator, contextmanager
from types import TracebackType

from pilotage.engine import (
    BatchDimensionError,
    DatasetError,
    DynamicOutputShapeException,
    OptionError,
    PilotageError,
    ShortTracebacks,
    UnexpectedArgumentError,
    source_lines,
)
from poptorch.poptorch_core import Error

__all__ = [
    "SHORT_TRACEBACKS",
    "DynamicShapeError",
    "allocation_error",
    "createPoptorchError",
    "require",
    "translated",
    "translated_without",
]

SHORT_TRACEBACKS = ShortTracebacks(meant_for_users=Error)
"""Leaves only the user's frames in an error that leaves a wrapped model."""

_OWN_TYPE = "poptorch_py_error"

_KEPT = (OptionError, DatasetError)
"""Raised unchanged: an invalid setting is a ValueError in PopTorch too, and PopTorch has no data sets."""

_ASSERTED = (BatchDimensionError, UnexpectedArgumentError)
"""PopTorch makes these checks by assertion, and programs catch them as such."""


def createPoptorchError(msg: str) -> Error:
    """An error of the Python layer, for the caller to raise."""
    return Error(f"'{_OWN_TYPE}': {msg}", type=_OWN_TYPE, message=msg)


def allocation_error(msg: str) -> Error:
    """Poplar's error about a program that does not fit the memory of its tiles, for the caller to raise."""
    kind = "poplar_graph_memory_allocation_error"
    return Error(f"'{kind}': {msg}", type=kind, message=msg)


def require(condition: object, message: str) -> None:
    """Raise AssertionError with this message unless the condition holds, also under ``python -O``."""
    if not condition:
        raise AssertionError(message)


class DynamicShapeError(Error, DynamicOutputShapeException):
    """The shape of a result depends on data; programs catch it as torch's own error too."""

    def __init__(self, text: str, *, type: str) -> None:
        Error.__init__(self, text, type=type)


class translated(ContextDecorator, AbstractContextManager[object]):
    """Raise the engine's errors from the block, or from the decorated function, as ``poptorch.Error``."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Raise the block's error under its name in PopTorch."""
        if isinstance(error, _KEPT) or not isinstance(error, PilotageError):
            return
        if isinstance(error, _ASSERTED):
            raise AssertionError(str(error)) from error
        kind = DynamicShapeError if isinstance(error.__cause__, DynamicOutputShapeException) else Error
        raise kind(str(error), type=_type_of(error)) from error


@contextmanager
def translated_without(excluded: Sequence[str]) -> Iterator[None]:
    """The same as `translated`, and messages name no line of an excluded file."""
    with translated(), source_lines.leaving_out(excluded):
        yield


def _type_of(error: PilotageError) -> str:
    words = re.findall("[A-Z][a-z]*", type(error).__name__)
    return "_".join(["pilotage", *(word.lower() for word in words)])
