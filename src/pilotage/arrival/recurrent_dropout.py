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
_SETTINGS = ("has_biases", "num_layers", "dropout", "train")
"""The arguments after the tensors, in their order."""


class DropoutOfTorch(TorchFunctionMode):
    """Runs recurrent networks with dropout without cuDNN."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func not in _NETWORKS or not _drops(args, kwargs):
            return func(*args, **(kwargs or {}))
        before = torch.backends.cudnn.enabled
        torch.backends.cudnn.enabled = False
        try:
            return func(*args, **(kwargs or {}))
        finally:
            torch.backends.cudnn.enabled = before


def _drops(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> bool:
    """Whether a call has dropout."""
    found = dict(zip(_SETTINGS, args[_first_setting(args) :], strict=False)) | dict(kwargs or {})
    return bool(found["num_layers"] > 1 and found["dropout"] > 0 and found["train"])


def _first_setting(args: Sequence[Any]) -> int:
    """The place of the first setting, a flag: how many tensors and lists precede it depends on the call."""
    return next((number for number, each in enumerate(args) if isinstance(each, bool)), len(args))
