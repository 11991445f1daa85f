"""Whether a tensor lies on a card that the kernels written in Triton serve."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from types import ModuleType

from torch import Tensor


def supports(x: Tensor) -> bool:
    """Whether the kernels take this tensor; everything else is done with torch's own operations."""
    return x.is_cuda and x.dim() == 4 and x.shape[1] % 8 == 0 and has_triton()


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def norm_kernels() -> ModuleType:
    """The module with the kernels of the normalisation, which imports Triton."""
    return importlib.import_module("cosmictagger.networks.triton_norm")


def resizing_kernels() -> ModuleType:
    """The module with the kernels that halve and double."""
    return importlib.import_module("cosmictagger.networks.triton_resizing")
