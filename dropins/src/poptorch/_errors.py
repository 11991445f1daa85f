"""Errors of PopTorch's Python layer, and the engine's errors under their PopTorch name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pilotage.errors import (
    BatchDimensionError,
    BufferBroadcastError,
    DatasetError,
    OptionError,
    PilotageError,
    UnexpectedArgumentError,
)
from poptorch.poptorch_core import Error

__all__ = ["createPoptorchError", "translated"]

_OWN_TYPE = "poptorch_py_error"

_KEPT = (OptionError, DatasetError)
"""A wrong setting is a ValueError in PopTorch too, and data sets are none of its business."""

_ASSERTED = (BatchDimensionError, UnexpectedArgumentError)
"""PopTorch makes these checks by assertion, and programs catch them as such."""


_BROADCASTING = (
    "PopTorch does not support broadcasting buffers. If your model is able to tolerate buffers becoming out of sync between "
    "replicas, you can disable buffer broadcasting using poptorch.Options.broadcastBuffers(False)."
)


def createPoptorchError(msg: str) -> Error:
    """An error of the Python layer, to be raised by the caller."""
    return Error(f"'{_OWN_TYPE}': {msg}", type=_OWN_TYPE, message=msg)


@contextmanager
def translated() -> Iterator[None]:
    """Raise the engine's errors from the block, or from the decorated function, as ``poptorch.Error``."""
    try:
        yield
    except _KEPT:
        raise
    except _ASSERTED as error:
        raise AssertionError(str(error)) from error
    except BufferBroadcastError as error:
        raise createPoptorchError(_BROADCASTING) from error
    except PilotageError as error:
        raise Error(str(error), type=_type_of(error)) from error


def _type_of(error: PilotageError) -> str:
    words = re.findall("[A-Z][a-z]*", type(error).__name__)
    return "_".join(["pilotage", *(word.lower() for word in words)])
