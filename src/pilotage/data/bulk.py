"""Read whole batches at once, if that provably gives the same as reading sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import torch
from torch import Tensor
from torch.utils.data import Subset, TensorDataset, default_collate

from pilotage.torch_private import collate_tensor_fn, default_collate_fn_map

BulkReader: TypeAlias = Callable[[Sequence[int]], Any]
"""Takes the indices of one batch and returns the batch."""


@runtime_checkable
class BulkDataset(Protocol):
    """A data set that can read a whole batch at once, faster than sample by sample.

    The batch has to equal ``default_collate([self[index] for index in indices])``. A loader without workers and without
    ``collate_fn`` calls it; torch's worker processes use torch's ``__getitems__``. A subclass that reads its samples
    differently has to override it, or is read sample by sample.
    """

    def fetch_batch(self, indices: Sequence[int]) -> Any:
        """The samples of these indices, collated."""


def bulk_reader(dataset: Any, collate: object) -> BulkReader | None:
    """A function that reads whole batches of this data set; None if it must be read sample by sample."""
    if collate is not default_collate:
        return None
    if isinstance(dataset, BulkDataset) and _matches_its_samples(type(dataset)):
        return dataset.fetch_batch
    if _reads_like(dataset, Subset):
        return _subset_reader(dataset)
    if _reads_like(dataset, TensorDataset) and all(map(_is_stacked_by_indexing, dataset.tensors)):
        return _TensorReader(dataset.tensors)
    return None


def _matches_its_samples(kind: type) -> bool:
    """Whether ``fetch_batch`` is at least as derived as the methods that read samples."""

    def depth(method: str) -> int:
        return next((depth for depth, parent in enumerate(kind.__mro__) if method in vars(parent)), len(kind.__mro__))

    return depth("fetch_batch") <= min(depth("__getitem__"), depth("__getitems__"))


def _reads_like(dataset: Any, kind: type) -> bool:
    """Whether samples are read as ``kind`` reads them, even if a subclass overrides something else."""
    return isinstance(dataset, kind) and all(
        getattr(type(dataset), method, None) is getattr(kind, method, None)
        for method in ("__getitem__", "__getitems__")
    )


def _is_stacked_by_indexing(tensor: Tensor) -> bool:
    """Whether collating rows of this tensor gives the same memory layout as indexing it."""
    return (
        type(tensor) is Tensor
        and tensor.is_cpu
        and tensor.layout is torch.strided
        and tensor.is_contiguous()
        and not tensor.is_quantized
        and default_collate_fn_map.get(Tensor) is collate_tensor_fn
    )


class _TensorReader:
    """Reads a TensorDataset with one indexing operation per tensor."""

    def __init__(self, tensors: tuple[Tensor, ...]) -> None:
        self._tensors = tensors

    def __call__(self, indices: Sequence[int]) -> list[Tensor]:
        try:
            chosen = torch.tensor(indices)
            if chosen.dtype is torch.int64 and chosen.ndim == 1:
                return [tensor.index_select(0, chosen) for tensor in self._tensors]
        except (IndexError, RuntimeError, TypeError, ValueError):
            # Plain indexing supports negative indices, and names an index that is out of bounds.
            pass
        return self._one_by_one(indices)

    def _one_by_one(self, indices: Sequence[Any]) -> list[Tensor]:
        batch: list[Tensor] = default_collate([tuple(tensor[index] for tensor in self._tensors) for index in indices])
        return batch


def _subset_reader(subset: Subset[Any]) -> BulkReader | None:
    whole = bulk_reader(subset.dataset, default_collate)
    if whole is None:
        return None
    chosen = subset.indices
    return lambda indices: whole([chosen[index] for index in indices])
