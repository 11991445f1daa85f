"""Torch's settings that change what kernels compute; compiled code is measured and found again under the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def precision_settings() -> dict[str, Any]:
    """What the user has allowed."""
    return {
        "matmul": torch.get_float32_matmul_precision(),
        "convolution TF32": torch.backends.cudnn.allow_tf32,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "cudnn": torch.backends.cudnn.enabled,
    }


def set_precision(settings: Mapping[str, Any]) -> None:
    """Allow in this process what was allowed in another."""
    torch.set_float32_matmul_precision(settings["matmul"])
    torch.backends.cudnn.allow_tf32 = settings["convolution TF32"]
    torch.backends.cudnn.enabled = settings["cudnn"]
    torch.backends.cudnn.benchmark = not settings["deterministic"]
    torch.use_deterministic_algorithms(settings["deterministic"])
