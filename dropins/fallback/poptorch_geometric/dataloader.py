"""Loaders of graphs whose batches have fixed sizes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import torch.utils.data
from torch_geometric.data import Batch

import poptorch
from poptorch_geometric.batch_sampler import FixedBatchSampler
from poptorch_geometric.collate import FixedSizeCollater
from poptorch_geometric.fixed_size_options import FixedSizeOptions, FixedSizeStrategy, OverSizeStrategy

__all__ = ["CustomFixedSizeDataLoader", "DataLoader", "FixedSizeDataLoader"]


def FixedSizeDataLoader(
    dataset: Any,
    batch_size: int | None = None,
    shuffle: bool = False,
    fixed_size_options: FixedSizeOptions | None = None,
    fixed_size_strategy: FixedSizeStrategy = FixedSizeStrategy.PadToMax,
    over_size_strategy: OverSizeStrategy = OverSizeStrategy.Error,
    add_pad_masks: bool | None = True,
    follow_batch: Sequence[str] | None = None,
    exclude_keys: Iterable[str] | None = None,
    options: poptorch.Options | None = None,
    **kwargs: Any,
) -> torch.utils.data.DataLoader[Any]:
    """A loader whose batches have the same sizes, with masks of what is real.

    ``batch_size`` counts the graph of padding and gives the number of graphs if there are no options. With PopTorch's
    ``options`` each item has the batches of one call.
    """
    sizes = fixed_size_options or FixedSizeOptions.from_dataset(dataset, batch_size or 2)
    if batch_size is not None and batch_size > sizes.num_graphs:
        raise ValueError(
            f"batch_size is {batch_size}, but FixedSizeOptions has num_graphs={sizes.num_graphs}. Give it at least "
            f"num_graphs={batch_size}."
        )
    collater = FixedSizeCollater(
        sizes,
        add_masks_to_batch=bool(add_pad_masks),
        trim_nodes=over_size_strategy.trims_nodes,
        trim_edges=over_size_strategy.trims_edges,
        follow_batch=follow_batch,
        exclude_keys=exclude_keys,
    )
    sampler = FixedBatchSampler(
        dataset,
        (batch_size or sizes.num_graphs) - 1,
        shuffle=shuffle,
        fixed_size_options=sizes,
        fixed_size_strategy=fixed_size_strategy,
        drop_last=kwargs.pop("drop_last", False),
    )
    if options is None:
        return torch.utils.data.DataLoader(dataset, batch_sampler=sampler, collate_fn=collater, **kwargs)
    return poptorch.DataLoader(options, dataset, batch_sampler=sampler, collate_fn=collater, **kwargs)


def CustomFixedSizeDataLoader(
    dataset: Any,
    num_nodes: int,
    batch_size: int = 2,
    num_edges: int | None = None,
    node_pad_value: float | None = None,
    edge_pad_value: float | None = None,
    graph_pad_value: float | None = None,
    **kwargs: Any,
) -> torch.utils.data.DataLoader[Any]:
    """`FixedSizeDataLoader` with sizes as arguments, as older programs give them."""
    sizes = FixedSizeOptions(num_nodes, num_edges, batch_size, node_pad_value, edge_pad_value, graph_pad_value)
    return FixedSizeDataLoader(dataset, batch_size, fixed_size_options=sizes, **kwargs)


class DataLoader(poptorch.DataLoader):
    """PopTorch's loader for graphs of equal sizes: batches are made as in PyTorch Geometric."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
        options: poptorch.Options | None = None,
        **kwargs: Any,
    ) -> None:
        # A partial function, because workers get the loader pickled.
        collate = functools.partial(Batch.from_data_list, follow_batch=follow_batch, exclude_keys=exclude_keys)
        sampler = FixedBatchSampler(dataset, batch_size, shuffle=shuffle, drop_last=kwargs.pop("drop_last", True))
        super().__init__(options or poptorch.Options(), dataset, batch_sampler=sampler, collate_fn=collate, **kwargs)
