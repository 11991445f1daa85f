"""Group normalisation whose groups take every n-th channel, as PopART's ``groupNormStridedChannelGrouping`` asks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["StridedGroups"]


class StridedGroups(TorchFunctionMode):
    """While active, channel c of a group normalisation is in group c % n, and not c // (channels / n)."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function."""
        kwargs = kwargs or {}
        return _strided(func, args, kwargs) if func is functional.group_norm else func(*args, **kwargs)


def _strided(func: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    given = _SIGNATURE.bind(*args, **kwargs).arguments
    x, groups = given["input"], given["num_groups"]
    channels = x.shape[1]
    if groups < 1 or channels % groups:
        return func(*args, **kwargs)  # Torch says what is wrong.
    order = torch.arange(channels, device=x.device).reshape(-1, groups).t().flatten()
    weight, bias = (None if given.get(name) is None else given[name][order] for name in ("weight", "bias"))
    # Not `func`, which would be permuted again where forward is followed twice, as in a comparison with eager PyTorch.
    result = torch.group_norm(x[:, order], groups, weight, bias, given.get("eps", 1e-5), torch.backends.cudnn.enabled)
    return result[:, order.argsort()]


_SIGNATURE = inspect.signature(functional.group_norm)
