"""The narrower types that PopTorch computes in.

Inputs of float64 and bfloat16 become float32, unless all weights have the same type as the input: weights are not
converted, and torch needs inputs of their type. Outputs of these types come back as float32, and int64 as int32.
Integer inputs keep 64 bits, since torch's losses and embeddings require them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["DeviceInputs", "as_device_output"]

_INPUTS = {torch.float64: torch.float32, torch.bfloat16: torch.float32}
_OUTPUTS = {torch.int64: torch.int32, **_INPUTS}


class DeviceInputs:
    """Converts the inputs of a module to the types that the device computes in."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def __call__(self, tensor: Tensor) -> Tensor:
        """An input in the type that the device computes in."""
        narrower = _INPUTS.get(tensor.dtype)
        if narrower is None or self._computes_in(tensor.dtype):
            return tensor
        return tensor.to(narrower)

    def _computes_in(self, dtype: torch.dtype) -> bool:
        types = {parameter.dtype for parameter in self._module.parameters() if parameter.is_floating_point()}
        return types == {dtype}


def as_device_output(tensor: Tensor) -> Tensor:
    """An output in the type that comes back from the device."""
    narrower = _OUTPUTS.get(tensor.dtype)
    return tensor if narrower is None else tensor.to(narrower)
