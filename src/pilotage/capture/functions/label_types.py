"""Says in the user's terms what is wrong with the labels of a classification loss.

Without data, torch computes these losses by other functions, and its error names one of those.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_LOSSES = (functional.cross_entropy, functional.nll_loss)


def note_labels(error: Exception, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Add a note to an error of a classification loss whose labels cannot be class indices."""
    if function not in _LOSSES or getattr(error, "__notes__", None):
        return
    scores = args[0] if args else kwargs.get("input")
    labels = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(scores, Tensor) or not isinstance(labels, Tensor) or labels.dtype in (torch.int64, torch.uint8):
        return
    if labels.shape == scores.shape and labels.is_floating_point():
        return
    shapes = f" Probabilities of classes need the shape {tuple(scores.shape)}." if labels.is_floating_point() else ""
    error.add_note(
        f"[pilotage] The labels of {function.__name__} are {labels.dtype} of shape {tuple(labels.shape)}. Class "
        f"indices must be torch.int64: pass labels.long().{shapes}"
    )
