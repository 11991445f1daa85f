"""Which samples of a data set each of several processes reads."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import Sampler

from pilotage.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """Which of the processes that divide a data set among themselves this one is."""

    process: int = 0
    """This process, counted from 0."""

    processes: int = 1
    """All of them."""

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise OptionError(f"processes is {self.processes}. There has to be at least 1.")
        if not 0 <= self.process < self.processes:
            raise OptionError(f"process is {self.process}. It has to lie between 0 and {self.processes - 1}.")


def even_shard(samples: int, shard: Shard) -> range:
    """A split that leaves nothing out: the first processes get one sample more where it does not come out even."""
    each, left_over = divmod(samples, shard.processes)
    start = shard.process * each + min(shard.process, left_over)
    return range(start, start + each + (shard.process < left_over))


def whole_steps_shard(samples: int, step: int, shard: Shard) -> range:
    """A split into equal shards of whole steps, which leaves a tail of fewer than ``step * processes`` samples out."""
    each = step * (samples // (step * shard.processes))
    return range(shard.process * each, (shard.process + 1) * each)


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


class ShardSampler(Sampler[int]):
    """Draws this process's share of a data set, in the data set's order or in one that all processes agree on.

    With ``drop_last`` every process gets the same number of whole steps. The samples that are left over then change
    from one shuffled epoch to the next: every second epoch the window of all processes moves to the far end.
    """

    def __init__(
        self, data_source: Sized, *, shard: Shard, step: int, drop_last: bool, shuffle_seed: int | None = None
    ) -> None:
        self._data_source = data_source
        self._shard = shard
        self._step = step
        self._drop_last = drop_last
        self._shuffle = None if shuffle_seed is None else EpochShuffle(shuffle_seed)

    def __len__(self) -> int:
        return len(self._window())

    def __iter__(self) -> Iterator[int]:
        window = self._window()
        if self._shuffle is None:
            return iter(window)
        shift = self._left_over() if self._shuffle.epochs_drawn % 2 else 0
        order = self._shuffle.draw(len(self._data_source))
        return iter(order[window.start + shift : window.stop + shift].tolist())

    def go_to_epoch(self, epoch: int) -> None:
        """Have the next order be that of an epoch, counted from 0."""
        if self._shuffle is not None:
            self._shuffle.go_to(epoch, len(self._data_source))

    def _window(self) -> range:
        samples = len(self._data_source)
        return (
            whole_steps_shard(samples, self._step, self._shard) if self._drop_last else even_shard(samples, self._shard)
        )

    def _left_over(self) -> int:
        return len(self._data_source) - len(self._window()) * self._shard.processes if self._drop_last else 0
