"""Aggregations whose number of results is known before the data."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn.aggr import Aggregation

__all__ = ["set_aggregation_dim_size"]


def set_aggregation_dim_size(model: nn.Module, dim_size: int) -> nn.Module:
    """Let every aggregation of a model have this many results unless its call says otherwise.

    PyTorch Geometric would look for the largest index, and a program cannot have sizes that depend on data.
    """
    for module in model.modules():
        if isinstance(module, Aggregation):
            module.__class__ = _sized(type(module), dim_size)
    return model


def _sized(kind: type[Aggregation], size: int) -> type[Aggregation]:
    def call(self: Any, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None, **settings: Any) -> Tensor:
        if settings.get("dim_size") is None and ptr is None:
            settings["dim_size"] = size
        result: Tensor = kind.__call__(self, x, index, ptr, **settings)
        return result

    return type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
