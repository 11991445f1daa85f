"""The device ``ipu`` in forward: the device that the model runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["IpuDevice"]


class IpuDevice(TorchFunctionMode):
    """While active, tensors that are asked for on the device ``ipu`` are made where forward runs."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function without the device ``ipu`` among its arguments."""
        kwargs = kwargs or {}
        if _is_ipu(kwargs.get("device")):
            kwargs = {name: value for name, value in kwargs.items() if name != "device"}
        if func is Tensor.to:
            args = tuple(value for value in args if not _is_ipu(value))
            if len(args) == 1 and not {"dtype", "other", "memory_format", "device"} & kwargs.keys():
                return args[0].clone() if kwargs.get("copy") else args[0]
        if func is getattr(Tensor, "ipu", None):
            return args[0]
        return func(*args, **kwargs)


def _is_ipu(device: object) -> bool:
    kind = device.type if isinstance(device, torch.device) else device
    return isinstance(kind, str) and kind.partition(":")[0] == "ipu"
