"""Which samples of a data set each process reads, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.data import Sampler

from pilotage.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """This process's part of a data set that several processes divide."""

    process: int = 0
    """This process, counted from 0."""

    processes: int = 1
    """The number of processes."""

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise OptionError(f"processes is {self.processes}. It must be at least 1.")
        if not 0 <= self.process < self.processes:
            raise OptionError(f"process is {self.process}. It must be between 0 and {self.processes - 1}.")


def even_shard(samples: int, shard: Shard) -> range:
    """A split of all samples; the first processes get one more if they do not divide evenly."""
    each, left_over = divmod(samples, shard.processes)
    start = shard.process * each + min(shard.process, left_over)
    return range(start, start + each + (shard.process < left_over))


def whole_steps_shard(samples: int, step: int, shard: Shard) -> range:
    """A split into equal shards of whole steps; fewer than ``step * processes`` samples remain at the end."""
    each = step * (samples // (step * shard.processes))
    return range(shard.process * each, (shard.process + 1) * each)


class EpochShuffle:
    """Permutations from one seeded generator, one per epoch.

    Processes with the same seed in the same epoch draw the same permutation without communicating. Worker processes
    receive indices, never the permutation.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generator = torch.Generator()
        self._generator.manual_seed(seed)
        self._epochs_drawn = 0

    @property
    def epochs_drawn(self) -> int:
        """The number of permutations drawn so far."""
        return self._epochs_drawn

    def go_to(self, epoch: int, samples: int) -> None:
        """Go to an epoch: draw or rewind until the next permutation is its own."""
        if self._epochs_drawn > epoch:
            self._generator.manual_seed(self._seed)
            self._epochs_drawn = 0
        while self._epochs_drawn < epoch:
            self.draw(samples)

    def draw(self, samples: int) -> Tensor:
        """The permutation of ``samples`` indices for the next epoch."""
        self._epochs_drawn += 1
        return torch.randperm(samples, generator=self._generator)


class ShardSampler(Sampler[int]):
    """Draws this process's shard of a data set, in its order or in a shuffled order that all processes share.

    With ``drop_last`` every process gets the same number of whole steps. The samples that remain change from one
    shuffled epoch to the next: in every second epoch the window of all processes moves to the far end.
    """

    def __init__(
        self, data_source: Sized, *, shard: Shard, step: int, drop_last: bool, shuffle_seed: int | None = None
    ) -> None:
        self.data_source = data_source
        self.shard = shard
        self._step = step
        self._drop_last = drop_last
        self.shuffle = None if shuffle_seed is None else EpochShuffle(shuffle_seed)

    def __len__(self) -> int:
        return len(self._window())

    def __iter__(self) -> Iterator[int]:
        window = self._window()
        if self.shuffle is None:
            return iter(window)
        shift = self._left_over() if self.shuffle.epochs_drawn % 2 else 0
        order = self.shuffle.draw(len(self.data_source))
        return iter(order[window.start + shift : window.stop + shift].tolist())

    def go_to_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration, counted from 0."""
        if self.shuffle is not None:
            self.shuffle.go_to(epoch, len(self.data_source))

    def _window(self) -> range:
        samples = len(self.data_source)
        return (
            whole_steps_shard(samples, self._step, self.shard) if self._drop_last else even_shard(samples, self.shard)
        )

    def _left_over(self) -> int:
        return len(self.data_source) - len(self._window()) * self.shard.processes if self._drop_last else 0
