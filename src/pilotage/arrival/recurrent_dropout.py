"""Dropout between the layers of a recurrent network that eager PyTorch runs with cuDNN.

cuDNN draws from a generator of its own, so nothing else can draw the same numbers. The reference runs such networks
with torch's own kernels, which draw from torch's generator, as the program does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NETWORKS = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})


class DropoutOfTorch(TorchFunctionMode):
    """Runs recurrent networks with dropout without cuDNN."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func not in _NETWORKS or not _drops(args):
            return func(*args, **(kwargs or {}))
        before = torch.backends.cudnn.enabled
        torch.backends.cudnn.enabled = False
        try:
            return func(*args, **(kwargs or {}))
        finally:
            torch.backends.cudnn.enabled = before


def _drops(args: Sequence[Any]) -> bool:
    """Whether a call has dropout: the settings follow the list of weights."""
    weights = next(number for number, each in enumerate(args) if isinstance(each, list))
    layers, dropout, train = args[weights + 2 : weights + 5]
    return bool(layers > 1 and dropout > 0 and train)
