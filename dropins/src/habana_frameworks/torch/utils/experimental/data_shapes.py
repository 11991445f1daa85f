"""The shapes of batches: each new one makes the card compile again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from pilotage.engine import tree_leaves


def data_dynamicity(dl: Iterable[Any]) -> dict[tuple[tuple[int, ...], ...], int]:
    """Count the batches of each shape, and print them as a table."""
    counts = Counter(
        tuple(tuple(each.shape) for each in tree_leaves(batch) if isinstance(each, Tensor)) for batch in dl
    )
    print(f"{'Shapes':<60} Batches")
    for shapes, count in counts.most_common():
        print(f"{', '.join(map(str, shapes)):<60} {count}")
    return dict(counts)


def const_shape_dataloader(dl: DataLoader[Any], maxlen: int) -> DataLoader[Any]:
    """Return a loader with the same data whose sequences are all padded with zeros to ``maxlen``.

    The first dimension of each element of a sample is its length; longer elements raise an error.
    """

    def padded(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() == 0:
            return value
        if len(value) > maxlen:
            raise ValueError(f"A sample has {len(value)} elements, more than maxlen={maxlen}.")
        return torch.cat([value, value.new_zeros(maxlen - len(value), *value.shape[1:])])

    def collate(samples: list[Any]) -> Any:
        return default_collate([_mapped(padded, sample) for sample in samples])

    return DataLoader(
        dl.dataset,
        batch_size=dl.batch_size,
        sampler=dl.sampler,
        num_workers=dl.num_workers,
        collate_fn=collate,
        drop_last=dl.drop_last,
    )


def _mapped(function: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(function, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_mapped(function, each) for each in value)
    return function(value)
