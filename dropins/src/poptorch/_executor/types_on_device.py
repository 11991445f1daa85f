"""The narrower types that PopTorch computes in.

Inputs of float64 and bfloat16 become float32, unless all weights have the same type as the input: weights are not
converted, and torch needs inputs of their type. Outputs of these types come back as float32, and int64 as int32.
Integer inputs keep 64 bits, since torch's losses and embeddings require them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn

__all__ = ["NARROWER_OUTPUTS", "input_conversions"]

_NARROWER_INPUTS = {torch.float64: torch.float32, torch.bfloat16: torch.float32}
NARROWER_OUTPUTS = {torch.int64: torch.int32, **_NARROWER_INPUTS}
"""The types in which outputs come back from the device instead of their own."""


def input_conversions(module: nn.Module) -> Mapping[torch.dtype, Callable[[Tensor], Tensor]]:
    """How inputs of a module get the type that the device computes in, for each type that may have to change."""
    return dict.fromkeys(_NARROWER_INPUTS, partial(_as_device_input, module))


def _as_device_input(module: nn.Module, tensor: Tensor) -> Tensor:
    types = {parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()}
    return tensor if types == {tensor.dtype} else tensor.to(_NARROWER_INPUTS[tensor.dtype])
