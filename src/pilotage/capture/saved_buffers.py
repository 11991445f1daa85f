"""Copies of buffers saved for backward, so that forward may write into a buffer after using it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from pilotage.torch_private import storage_address

_WRITTEN = "modified by an inplace operation"


def is_written_too_early(error: RuntimeError) -> bool:
    """Whether torch's error says that a tensor saved for backward was modified in place."""
    return _WRITTEN in str(error)


def buffers_kept_for_backward(buffers: Iterable[Tensor]) -> AbstractContextManager[object]:
    """While active, operations that save a buffer for backward save a copy of it.

    An example is the state of a recurrent layer: forward reads it from a buffer and writes the new one there.
    """
    storages = {storage_address(buffer.untyped_storage()) for buffer in buffers}

    def keep(tensor: Tensor) -> tuple[Tensor, int]:
        kept = tensor.clone() if storage_address(tensor.untyped_storage()) in storages else tensor
        return kept, kept._version

    def take(saved: tuple[Tensor, int]) -> Tensor:
        tensor, version = saved
        if tensor._version != version:
            # torch does not make this check for tensors saved by hooks.
            raise RuntimeError(
                f"One of the variables needed for gradient computation has been {_WRITTEN}: {list(tensor.shape)} is at "
                f"version {tensor._version}; expected version {version} instead. Use clone() before writing into it."
            )
        return tensor

    return torch.autograd.graph.saved_tensors_hooks(keep, take)
