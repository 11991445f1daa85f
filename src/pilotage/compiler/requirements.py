"""What compilation requires on this machine."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from pathlib import Path

import torch

from pilotage.options import environment


def missing_compiler(device: torch.device) -> str | None:
    """What is missing to compile, or None. A C++ compiler builds CPU kernels and the launchers of Triton."""
    compiler = environment.cpp_compiler()
    if shutil.which(compiler) is None:
        return f"this machine has no C++ compiler ({compiler})"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "Python's headers are not installed (python3-dev or similar)"
    if device.type == "cuda" and importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    return None
