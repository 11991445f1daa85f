"""Which graphs go into which batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Sampler

from poptorch_geometric.fixed_size_options import FixedSizeOptions, FixedSizeStrategy, Sizes, sizes_of

__all__ = ["FixedBatchSampler", "make_exclude_keys"]


class FixedBatchSampler(Sampler[list[int]]):
    """Indices of graphs that fit into one batch: a fixed number of them, or as many as fit in order."""

    def __init__(
        self,
        dataset: Sequence[Any],
        num_graphs: int,
        *,
        shuffle: bool = False,
        fixed_size_options: FixedSizeOptions | None = None,
        fixed_size_strategy: FixedSizeStrategy = FixedSizeStrategy.PadToMax,
        drop_last: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        if num_graphs < 1:
            raise ValueError(f"num_graphs is {num_graphs}. A batch has at least one graph.")
        if fixed_size_strategy is FixedSizeStrategy.StreamPack and fixed_size_options is None:
            raise ValueError("FixedSizeStrategy.StreamPack needs fixed_size_options, to know how much fits.")
        self._dataset = dataset
        self._num_graphs = num_graphs
        self._shuffle = shuffle
        self._sizes = fixed_size_options
        self._packs = fixed_size_strategy is FixedSizeStrategy.StreamPack
        self._drop_last = drop_last
        self._generator = generator

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        filled = Sizes()
        for index in self._order():
            more = sizes_of(self._dataset[index]) if self._packs else Sizes()
            if batch and not self._fits(len(batch) + 1, filled + more):
                yield batch
                batch, filled = [], Sizes()
            batch.append(index)
            filled = filled + more
        if batch and not (self._drop_last and len(batch) < self._num_graphs):
            yield batch

    def __len__(self) -> int:
        """The number of batches; of packed ones it is known only if they are not shuffled."""
        if self._packs:
            if self._shuffle:
                raise TypeError("The number of packed batches depends on the order of the graphs.")
            return sum(1 for _ in self)
        whole, rest = divmod(len(self._dataset), self._num_graphs)
        return whole + (1 if rest and not self._drop_last else 0)

    def _order(self) -> list[int]:
        count = len(self._dataset)
        return torch.randperm(count, generator=self._generator).tolist() if self._shuffle else list(range(count))

    def _fits(self, graphs: int, sizes: Sizes) -> bool:
        return graphs <= self._num_graphs and (self._sizes is None or self._sizes.hold(sizes))


def make_exclude_keys(include_keys: Sequence[str], data: Any) -> list[str]:
    """The attributes of a graph that are not in a list: what to exclude in order to include only those."""
    return [key for key in data.keys() if key not in include_keys]  # noqa: SIM118
