"""The number types that a run computes with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cosmictagger.configuration.choices import Precision


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberTypes:
    """The number types of a precision."""

    activations: torch.dtype
    weights: torch.dtype = torch.float32
    scales_loss: bool = False
    """Whether an adaptive loss scale keeps gradients from vanishing."""

    def __str__(self) -> str:
        words = [type_name(self.activations) + " activations", type_name(self.weights) + " weights"]
        return ", ".join([*words, *(["loss scaling"] if self.scales_loss else [])])


NUMBER_TYPES = {
    Precision.float32: NumberTypes(activations=torch.float32),
    Precision.mixed: NumberTypes(activations=torch.float16, scales_loss=True),
    Precision.bfloat16: NumberTypes(activations=torch.bfloat16),
    Precision.float16: NumberTypes(activations=torch.float16, weights=torch.float16),
    Precision.float64: NumberTypes(activations=torch.float64, weights=torch.float64),
}


def number_types(precision: Precision, *, trains: bool, rounds_at_random: bool = False) -> NumberTypes:
    """The number types of a run.

    Float16 weights lose Adam's small updates unless the device rounds them at random, as an IPU does. On other devices,
    training in float16 keeps float32 weights and scales the loss.
    """
    if precision is Precision.float16 and trains and not rounds_at_random:
        return NUMBER_TYPES[Precision.mixed]
    return NUMBER_TYPES[precision]


def type_name(kind: torch.dtype) -> str:
    """The name of a type without its module."""
    return str(kind).removeprefix("torch.")
