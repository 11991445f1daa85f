"""Loaders that divide a data set among processes: together they yield, update by update, what one process would.

The engine's own loader gives each process a block of the shuffled data set. A watched process gets its share of each
update instead, so that all processes together train on the samples that a script without processes trains on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pilotage.proof.watching.loaders import LoaderWatch, next_epoch
from pilotage.proof.watching.patching import replace_function
from pilotage.proof.watching.random_numbers import shared_order

if TYPE_CHECKING:
    from pilotage.data.loader import Loader
    from pilotage.data.partition import Shard, ShardSampler

__all__ = ["follow_loader", "follow_partition"]


def follow_loader(module: ModuleType, loaders: LoaderWatch) -> None:
    """`pilotage.data.loader` was imported."""
    loaders.follow_subclass(module.Loader)

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def init(loader: Loader, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            if loader.combined_batch_size is not None:
                loader.sampler.__dict__["_proof_share"] = (
                    loader.combined_batch_size // loader.batching.device_iterations
                )

        return init

    replace_function(module.Loader, "__init__", make)


def follow_partition(module: ModuleType, seed: int) -> None:
    """`pilotage.data.partition` was imported."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def iterate(sampler: ShardSampler) -> Iterator[int]:
            count, share = len(sampler.data_source), sampler.__dict__.get("_proof_share")
            if share is None:
                return iter(original(sampler))
            epoch = next_epoch(sampler)
            order = range(count) if sampler.shuffle is None else shared_order(seed, epoch, count).tolist()
            return iter(_interleaved(order, share, sampler.shard, len(sampler)))

        return iterate

    replace_function(module.ShardSampler, "__iter__", make)


def _interleaved(order: Sequence[int], share: int, shard: Shard, length: int) -> list[int]:
    """This process's samples: its share of each update, one update after the other, as many as it would read."""
    whole = length // share
    found: list[int] = []
    for update in range(whole):
        start = (update * shard.processes + shard.process) * share
        found += order[start : start + share]
    rest = order[whole * share * shard.processes :]
    left = length - whole * share
    return [*found, *list(rest)[shard.process * left : (shard.process + 1) * left]]
