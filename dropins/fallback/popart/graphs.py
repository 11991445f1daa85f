"""PopART's classes for building and running graphs: each of them raises when it is used."""

from __future__ import annotations

from typing import Any

from popart.errors import popart_exception

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
]


class _NotHere:
    """Raises when an instance is made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise popart_exception(
            f"popart.{type(self).__name__} needs PopART, and Pilotage runs PyTorch models only. Write the model in "
            "PyTorch, and wrap it with poptorch.trainingModel or pilotage.training."
        )


class Builder(_NotHere):
    """Builds an ONNX graph."""


class DataFlow(_NotHere):
    """Says which tensors a session returns."""


class DeviceManager(_NotHere):
    """Finds IPUs."""


class InferenceSession(_NotHere):
    """Runs a graph."""


class OptimizerValue(_NotHere):
    """A constant or variable value of an optimizer."""


class Patterns(_NotHere):
    """Rewrites of graphs."""


class PyStepIO(_NotHere):
    """The inputs and outputs of a step."""


class SessionOptions(_NotHere):
    """Options of a session."""


class TrainingSession(_NotHere):
    """Trains a graph."""
