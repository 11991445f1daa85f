"""PopDist's functions for Graphcore's TensorFlow, which is not supported."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["set_ipu_config"]


def set_ipu_config(*arguments: Any, **settings: Any) -> NoReturn:
    """Raise an error: this would configure Graphcore's TensorFlow."""
    raise RuntimeError(
        "popdist.tensorflow.set_ipu_config configures Graphcore's TensorFlow, which is not supported: remove the call, "
        "and pass popdist.poptorch.Options() to a PopTorch model instead."
    )
