"""Which numbers a run computes with, and which combinations there are."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cosmictagger.configuration.choices import ComputeMode, ModeKind, Precision


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


def refusal(precision: Precision, compute_mode: ComputeMode, mode: ModeKind) -> str | None:
    """Why a precision cannot be had there; None if it can."""
    if precision is Precision.mixed and compute_mode is ComputeMode.CPU:
        return "run.precision=mixed is float16 with loss scaling, which a CPU has no fast arithmetic for. Use bfloat16 or float32."
    if precision is Precision.mixed and compute_mode is ComputeMode.HPU:
        return "run.precision=mixed is float16 with loss scaling; Gaudi's own way is bfloat16. Use bfloat16 or float32."
    if precision is Precision.bfloat16 and compute_mode is ComputeMode.IPU and _has_ipu():
        return "run.precision=bfloat16 cannot be: an IPU has no such numbers. Use mixed, float16 or float32."
    if precision is Precision.float16 and mode is ModeKind.train and compute_mode is not ComputeMode.IPU:
        return (
            "run.precision=float16 keeps the weights in float16, too, where Adam's small updates vanish: it is for inference. "
            "Train with mixed or bfloat16."
        )
    return None


def _has_ipu() -> bool:
    """Whether PopTorch computes on an IPU; behind our drop-in there is another device, which may have more numbers."""
    import poptorch

    return bool(poptorch.ipuHardwareIsAvailable())


def word(kind: torch.dtype) -> str:
    """A type without its module."""
    return str(kind).removeprefix("torch.")
