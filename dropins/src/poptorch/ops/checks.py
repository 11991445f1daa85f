"""Checks of arguments that several operations share."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from pilotage.engine import detect_fake_mode
from poptorch._capture.capturing import current_capture
from poptorch._errors import createPoptorchError
from poptorch.poptorch_core import Error


def require_tensor(operation: str, name: str, value: Any) -> None:
    """Raise unless an argument is a tensor."""
    if not isinstance(value, Tensor):
        raise createPoptorchError(f"poptorch.{operation} takes a torch.Tensor as {name}, not {type(value).__name__}.")


def require_list_of_tensors(operation: str, value: Any) -> None:
    """Raise unless an argument is a list of tensors."""
    if not isinstance(value, list):
        raise ValueError(f"poptorch.{operation} expects a list of tensors. (Object is not list) It is {value!r}.")
    for position, element in enumerate(value):
        if not isinstance(element, Tensor):
            raise ValueError(
                f"poptorch.{operation} expects a list of tensors. (Object contained in list at index {position} is "
                f"not torch.tensor) It is {type(element).__name__}."
            )


def refuse_training(operation: str) -> None:
    """Raise while a model is compiled for training."""
    capture = current_capture()
    if capture is not None and capture.training:
        raise Error(f"{operation} is only supported in inference. Use it in a poptorch.inferenceModel.")


def is_traced(*values: Any) -> bool:
    """Whether operations are being captured, on tensors without data."""
    return detect_fake_mode(values) is not None
