"""What compiled code depends on besides the program: the device, the versions, and torch's precision settings."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from typing import Any

import torch

from pilotage.version import VERSION

FORMAT = "7"
"""The version of the format of compiled code."""


def compile_target(device: torch.device) -> dict[str, str]:
    """The parts of a fingerprint that describe where a program runs."""
    return {
        "device": _device_name(device),
        "torch": torch.__version__,
        "Python": f"{sys.implementation.cache_tag} on {platform.machine()}",
        "Pilotage": f"{VERSION}, format {FORMAT}",
        "precision": ", ".join(f"{name} {value}" for name, value in precision_settings().items()),
    }


def _device_name(device: torch.device) -> str:
    if device.type != "cuda":
        return f"{device.type} with {torch.backends.cpu.get_cpu_capability()}"
    facts = torch.cuda.get_device_properties(device)
    return f"{facts.name}, sm_{facts.major}{facts.minor}, CUDA {torch.version.cuda}"


def precision_settings() -> dict[str, Any]:
    """Torch's settings that change what kernels compute."""
    return {
        "matmul": torch.get_float32_matmul_precision(),
        "convolution TF32": torch.backends.cudnn.allow_tf32,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "cudnn": torch.backends.cudnn.enabled,
    }


def set_precision(settings: Mapping[str, Any]) -> None:
    """Apply the settings of another process."""
    torch.set_float32_matmul_precision(settings["matmul"])
    torch.backends.cudnn.allow_tf32 = settings["convolution TF32"]
    torch.backends.cudnn.enabled = settings["cudnn"]
    torch.backends.cudnn.benchmark = not settings["deterministic"]
    torch.use_deterministic_algorithms(settings["deterministic"])
