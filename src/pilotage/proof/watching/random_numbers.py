"""The same random numbers in every watched run, at every update."""

from __future__ import annotations

import random
import sys
from types import ModuleType

import torch
from torch import Tensor

__all__ = ["reseed", "seed_numpy", "seed_python", "seed_torch", "shared_order"]

_HAS_CUDA = torch.backends.cuda.is_built()
_seed_default = torch.default_generator.manual_seed


def reseed(seed: int, update: int, part: int) -> None:
    """Seed torch's generators for a part of an update, so that dropout draws the same in both scripts."""
    number = _mixed(seed, update, part)
    _seed_default(number)
    if _HAS_CUDA and torch.cuda.is_initialized():
        for generator in torch.cuda.default_generators:
            generator.manual_seed(number)


def shared_order(seed: int, epoch: int, count: int) -> Tensor:
    """The order of an epoch of a data set."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(_mixed(seed, epoch, 1 << 20)))


def seed_python(seed: int) -> None:
    """Seed Python's own generator."""
    random.seed(seed)


def seed_numpy(numpy: ModuleType, seed: int) -> None:
    """Seed numpy's global generator."""
    numpy.random.seed(seed % 2**32)


def seed_torch(seed: int) -> None:
    """Seed torch's generators."""
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        seed_numpy(sys.modules["numpy"], seed)


def _mixed(seed: int, first: int, second: int) -> int:
    # Sums of small products: computed at each batch, where arithmetic beyond 64 bits takes as long as the seeding.
    return (seed * 1_000_003 + first * 1_000_033 + (second + 1) * 7_919 + 17) % 2**63
