"""Weights that lie in the memory of another: the device keeps each tensor by itself, so they would drift apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import torch
from torch import Tensor, nn

from pilotage.errors import CaptureError
from pilotage.program.layout import StateLayout


def refuse_overlaps(module: nn.Module, layout: StateLayout) -> None:
    """Raise for a trained parameter that shares its memory with another parameter or buffer."""
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for names in _by_storage(state).values():
        for one, other in combinations(names, 2):
            if (one in layout.trained or other in layout.trained) and _overlap(state[one], state[other]):
                raise CaptureError(
                    f"'{one}' and '{other}' are two tensors in the same memory, as an assignment to .data makes them. The "
                    "device keeps each tensor by itself, and training would move them apart. Assign the parameter "
                    f"instead, model.{other} = model.{one}, or give one of them memory of its own with clone()."
                )


def _by_storage(state: Mapping[str, Tensor]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, tensor in state.items():
        if tensor.layout is torch.strided and tensor.device.type != "meta" and tensor.numel():
            found.setdefault(tensor.untyped_storage()._cdata, []).append(name)
    return found


def _overlap(one: Tensor, other: Tensor) -> bool:
    first, second = _extent(one), _extent(other)
    return first.start < second.stop and second.start < first.stop


def _extent(tensor: Tensor) -> range:
    """The bytes of its storage from a tensor's first element to its last."""
    start = tensor.storage_offset() * tensor.element_size()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return range(start, start + (last + 1) * tensor.element_size())
