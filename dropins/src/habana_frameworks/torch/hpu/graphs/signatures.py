"""What a graph was captured for: the nested structure of its inputs, and their copies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from habana_frameworks.torch.hpu.graphs.recording import HPUGraph
from pilotage.engine import tree_leaves


def input_hash(obj: Any) -> int:
    """Hash nested inputs: tensors by shape, view and autocast state, not by value; other objects by their hash."""
    if isinstance(obj, dict):
        return hash(tuple((name, input_hash(value)) for name, value in obj.items()))
    if isinstance(obj, list | tuple):
        return hash(tuple(input_hash(each) for each in obj))
    if isinstance(obj, Tensor):
        return hash((*signature(obj), obj.stride(), obj.storage_offset(), autocast_state()))
    return hash(obj)


def copy_to(dst: Any, src: Any) -> None:
    """Copy nested tensors into those of another nest with the same types and keys."""
    if type(dst) is not type(src):
        raise AssertionError(f"Cannot copy {type(src).__name__} into {type(dst).__name__}: the types must be equal.")
    if isinstance(dst, dict):
        if dst.keys() != src.keys():
            raise AssertionError(f"The keys differ: {sorted(map(str, dst))} and {sorted(map(str, src))}.")
        for name, value in dst.items():
            copy_to(value, src[name])
    elif isinstance(dst, list | tuple):
        for one, other in zip(dst, src, strict=True):
            copy_to(one, other)
    elif isinstance(dst, Tensor):
        dst.detach().copy_(src.detach(), non_blocking=True)


@dataclass
class CachedParams:
    """A captured graph with its inputs and outputs."""

    graph_inputs: Any
    graph_outputs: Any
    graph: HPUGraph
    out_tinfo_list: Any = None
    asynchronous: bool = False


def extract_tensors(data: Any) -> list[Tensor]:
    """Return all tensors of a nest."""
    return [each for each in tree_leaves(data) if isinstance(each, Tensor)]


def get_user_input_tensor_list(inputs: Any, tlist: list[Tensor]) -> None:
    """Append all tensors of a nest to a list."""
    tlist += extract_tensors(inputs)


def get_tensor_info(tensor: Tensor) -> dict[str, Any]:
    """Return shape, type and device of a tensor."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def autocast_state() -> tuple[bool, torch.dtype]:
    """Whether autocast is on, and its lower precision."""
    return torch.is_autocast_enabled("hpu"), torch.get_autocast_dtype("hpu")


def signatures(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """What distinguishes the graphs of different inputs."""
    return tuple(signature(each) if isinstance(each, Tensor) else _by_value(each) for each in leaves)


def signature(tensor: Tensor) -> tuple[Any, ...]:
    """What distinguishes the graphs of different tensors."""
    return tuple(tensor.shape), tensor.dtype, tensor.device, tensor.requires_grad


def _by_value(value: Any) -> Any:
    return value if isinstance(value, Hashable) else id(value)
