"""Python attributes that forward changes, as PopTorch treats them: they change once, when the model is captured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.engine import AttributeWatch

__all__ = ["attributes_as_captured"]


@contextmanager
def attributes_as_captured(module: nn.Module) -> Iterator[None]:
    """Let each forward in the block find the attributes that the captured one found."""
    watch = AttributeWatch(module)
    tensors = {id(value): value for part in module.modules() for value in vars(part).values() if _is_plain(value)}
    contents = [(tensor, tensor._version, tensor.detach().clone()) for tensor in tensors.values()]

    def put_back(part: nn.Module, args: Any) -> None:
        for change in watch.changes():
            change.put_back()
        with torch.no_grad():
            for tensor, version, content in contents:
                if tensor._version != version:
                    tensor.copy_(content)

    with module.register_forward_pre_hook(put_back, prepend=True):
        yield


def _is_plain(value: object) -> bool:
    return isinstance(value, Tensor)
