"""Collectives on values of the host, such as losses and accuracies: numbers, NumPy arrays and tensors.

Inside `popdist.execute_on_instances` they involve only its instances. PopTorch's users had Horovod for this.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy
import torch
import torch.distributed as dist
from torch import Tensor

from popdist._backend import peers
from popdist._communicators import Communicator, communicator
from popdist._environment import world_here

__all__ = ["all_gather", "all_reduce", "barrier", "broadcast"]

Value = TypeVar("Value", float, numpy.ndarray[Any, Any], Tensor)
_OPERATIONS = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.SUM, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}


def all_reduce(value: Value, op: str = "sum", communicator_id: int | None = None) -> Value:
    """The sum, mean, minimum or maximum of the values of all instances, with the type of the value."""
    if op not in _OPERATIONS:
        raise ValueError(f"No reduction named {op!r}. Choose one of: {', '.join(_OPERATIONS)}.")
    group, tensor = communicator(communicator_id), _copied(value)
    if op == "mean" and not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.double()
    if len(group.members) > 1:
        peers().reduce(tensor, _OPERATIONS[op], group.group)
    reduced: Value = _like(value, tensor / len(group.members) if op == "mean" else tensor)
    return reduced


def all_gather(value: Any, communicator_id: int | None = None) -> list[Any]:
    """The values of all instances in their order: numbers, strings, containers, NumPy arrays, tensors.

    Other objects are refused: they would need pickle, and reading a pickle can run the sender's code.
    """
    group = communicator(communicator_id)
    return [value] if len(group.members) == 1 else peers().gather(value, group.group)


def broadcast(value: Any, source: int = 0, communicator_id: int | None = None) -> Any:
    """The value of one instance, in all of them; it takes the same types as `all_gather`."""
    group = communicator(communicator_id)
    _check_source(source, group)
    return all_gather(value if world_here().rank == source else None, communicator_id)[group.members.index(source)]


def barrier(communicator_id: int | None = None) -> None:
    """Wait until all instances have called this."""
    all_gather(None, communicator_id)


def _check_source(source: int, group: Communicator) -> None:
    if source not in group.members:
        raise ValueError(f"The source is {source}. It must be one of the instances {list(group.members)}.")


def _copied(value: float | numpy.ndarray[Any, Any] | Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True).contiguous()
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    return torch.tensor(value)


def _like(value: Any, tensor: Tensor) -> Any:
    if isinstance(value, Tensor):
        return tensor.to(value.device)
    return tensor.numpy() if isinstance(value, numpy.ndarray) else tensor.item()
