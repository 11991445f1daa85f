"""Settings for inference. They change how the card compiles, but no results."""

from __future__ import annotations

from typing import Any, TypeVar

from habana_frameworks.torch import hpu

Model = TypeVar("Model")


def hpu_set_env(model: Model | None = None) -> Model | None:
    """Switch to inference mode and return the model. The vendor's bridge also folds batch norm into convolutions."""
    hpu.enable_inference_mode()
    hpu.enable_matmul3d_2d_reshape()
    return model


def hpu_set_inference_env(model: Model | None = None) -> Model | None:
    """Switch to inference mode: the newer name of hpu_set_env."""
    return hpu_set_env(model)


def hpu_initialize(
    model: Any = None, mark_only_scales_as_const: bool = False, optimizer: Any = None, args: Any = None
) -> None:
    """Mark parameters as constants of the card's graphs, which has no meaning here."""


def hpu_inference_initialize(
    model: Any = None, mark_only_scales_as_const: bool = False, optimizer: Any = None, args: Any = None
) -> None:
    """Mark parameters as constants: the newer name of hpu_initialize."""


def hpu_reset_env() -> None:
    """End inference mode."""
    hpu.disable_inference_mode()
    hpu.disable_matmul3d_2d_reshape()


def hpu_teardown_inference_env() -> None:
    """End inference mode: the newer name of hpu_reset_env."""
    hpu_reset_env()
