"""``torch.manual_seed`` in forward: it seeds the host, and not the device's own generator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["HostSeed"]


class HostSeed:
    """Takes the seed that forward sets; PopTorch sets it on the host, once, when the model is captured."""

    def __init__(self) -> None:
        self._seed: int | None = None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take seeds instead of seeding in the block, where the device draws."""
        seed = torch.manual_seed

        def take(number: int) -> torch.Generator:
            self._seed = int(number)
            return torch.default_generator

        torch.manual_seed = torch.random.manual_seed = take  # type: ignore[assignment]
        try:
            yield
        finally:
            torch.manual_seed = torch.random.manual_seed = seed

    def apply(self) -> None:
        """Seed the host as forward has asked to, if it has."""
        if self._seed is not None:
            torch.manual_seed(self._seed)
            self._seed = None
