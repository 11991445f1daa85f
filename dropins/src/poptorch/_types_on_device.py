"""The narrower types that PopTorch computes in.

Inputs of float64 and bfloat16 are computed in float32. Outputs of int64 and float64 come back as int32 and float32.
Integers keep 64 bits on the way in, since torch's own losses and embeddings ask for them.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["as_device_input", "as_device_output"]

_INPUTS = {torch.float64: torch.float32, torch.bfloat16: torch.float32}
_OUTPUTS = {torch.int64: torch.int32, torch.float64: torch.float32}


def as_device_input(tensor: Tensor) -> Tensor:
    """An input in the type that the device computes in."""
    narrower = _INPUTS.get(tensor.dtype)
    return tensor if narrower is None else tensor.to(narrower)


def as_device_output(tensor: Tensor) -> Tensor:
    """An output in the type that comes back from the device."""
    narrower = _OUTPUTS.get(tensor.dtype)
    return tensor if narrower is None else tensor.to(narrower)
