"""Whether our Triton kernels support a tensor, and access to them."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from types import ModuleType

import torch
from torch import Tensor

_TYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})


def supports(x: Tensor) -> bool:
    """Whether the kernels support this tensor; other tensors use torch's operations."""
    return x.is_cuda and x.dtype in _TYPES and x.dim() == 4 and x.shape[1] % 8 == 0 and has_triton()


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def norm_kernels() -> ModuleType:
    """The module of the normalisation kernels, which imports Triton."""
    return importlib.import_module("cosmictagger.networks.triton_norm")


def resizing_kernels() -> ModuleType:
    """The module of the resizing kernels, which imports Triton."""
    return importlib.import_module("cosmictagger.networks.triton_resizing")
