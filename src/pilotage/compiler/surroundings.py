"""What compiled code depends on besides the program."""

from __future__ import annotations

import platform
import sys

import torch

from pilotage.compiler.kernel_settings import precision_settings
from pilotage.version import VERSION

FORMAT = "6"
"""Changes when compiled code is written in another way."""


def surroundings(device: torch.device) -> dict[str, str]:
    """The parts of a fingerprint that tell where a program runs."""
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
