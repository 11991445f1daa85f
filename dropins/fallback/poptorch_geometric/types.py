"""How PopTorch takes PyTorch Geometric's graphs apart and rebuilds them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

import poptorch

__all__ = ["PyGArgsParser", "registerCustomArgParsers"]


class PyGArgsParser(poptorch.ICustomArgParser):
    """Graphs and batches, with one type of nodes or several: their tensors in the order of their names."""

    def yieldTensors(self, struct: Any) -> Iterator[Tensor]:
        """The tensors of a graph."""
        yield from (store[name] for store, name in _places(struct))

    def reconstruct(self, original_structure: Any, tensor_iterator: Iterator[Tensor]) -> Any:
        """A graph like the original with other tensors."""
        rebuilt = copy.copy(original_structure)
        for store, name in _places(rebuilt):
            store[name] = next(tensor_iterator)
        return rebuilt


def _places(struct: Any) -> list[tuple[Any, str]]:
    """Where the tensors of a graph are."""
    named = [(store, name) for store in struct.stores for name in sorted(store.keys())]
    return [(store, name) for store, name in named if isinstance(store[name], Tensor)]


def registerCustomArgParsers() -> None:
    """Let models and loaders take and return graphs and batches."""
    parser = PyGArgsParser()
    for kind in (Batch, Data, HeteroData):
        poptorch.registerCustomArgParser(kind, parser)
