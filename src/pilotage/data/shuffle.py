"""The order that all processes draw alike, epoch after epoch."""

from __future__ import annotations

import torch
from torch import Tensor


class EpochShuffle:
    """Permutations from one seeded generator whose state carries on from epoch to epoch.

    Processes that were given the same seed and are in the same epoch hold the same permutation, without a word to
    each other. It is drawn where the indices are drawn; worker processes receive indices and never the permutation.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generator = torch.Generator()
        self._generator.manual_seed(seed)
        self._epochs_drawn = 0

    @property
    def epochs_drawn(self) -> int:
        """Permutations that were drawn so far."""
        return self._epochs_drawn

    def go_to(self, epoch: int, samples: int) -> None:
        """Have drawn as many permutations as there were epochs before this one."""
        if self._epochs_drawn > epoch:
            self._generator.manual_seed(self._seed)
            self._epochs_drawn = 0
        while self._epochs_drawn < epoch:
            self.draw(samples)

    def draw(self, samples: int) -> Tensor:
        """The next epoch's permutation of ``samples`` indices."""
        self._epochs_drawn += 1
        return torch.randperm(samples, generator=self._generator)
