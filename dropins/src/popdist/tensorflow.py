"""PopDist's side for Graphcore's TensorFlow, which is not served here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["set_ipu_config"]


def set_ipu_config(*arguments: Any, **settings: Any) -> NoReturn:
    """Refuse: the configuration that it would set belongs to Graphcore's TensorFlow."""
    raise RuntimeError(
        "popdist.tensorflow.set_ipu_config configures Graphcore's TensorFlow, and PyTorch alone is served here: leave the call "
        "out, and give popdist.poptorch.Options() to a PopTorch model instead."
    )
