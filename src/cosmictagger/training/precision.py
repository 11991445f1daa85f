"""The number types that a run computes with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cosmictagger.configuration.choices import Precision


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbers:
    """The types of one precision."""

    activations: torch.dtype
    weights: torch.dtype = torch.float32
    scales_loss: bool = False
    """Whether gradients are kept from vanishing by a loss scale that adapts itself."""

    def __str__(self) -> str:
        words = [word(self.activations) + " activations", word(self.weights) + " weights"]
        return ", ".join([*words, *(["loss scaling"] if self.scales_loss else [])])


NUMBERS = {
    Precision.float32: Numbers(activations=torch.float32),
    Precision.mixed: Numbers(activations=torch.float16, scales_loss=True),
    Precision.bfloat16: Numbers(activations=torch.bfloat16),
    Precision.float16: Numbers(activations=torch.float16, weights=torch.float16),
}


def word(kind: torch.dtype) -> str:
    """A type without its module."""
    return str(kind).removeprefix("torch.")
