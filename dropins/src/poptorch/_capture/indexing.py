"""Calls that PopTorch treats in its own way because their result depends on values: masks, classes and bins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pilotage.engine import source_lines
from poptorch.poptorch_core import Error

__all__ = ["Indexing"]


class Indexing(TorchFunctionMode):
    """While active, uint8 masks select like boolean ones, and sizes that depend on values are refused."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function."""
        form = _FORMS.get(func)
        kwargs = kwargs or {}
        return func(*args, **kwargs) if form is None else form(func, args, kwargs)


def _one_hot(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if not isinstance(classes, int) or classes < 0:
        raise Error(
            "OneHot num classes must be specified and must be constant. Call "
            f"torch.nn.functional.one_hot(x, num_classes=n) with a plain number.{source_lines.called_from()}"
        )
    return func(*args, **kwargs)


def _bincount(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    length = args[2] if len(args) > 2 else kwargs.get("minlength", 0)
    if not isinstance(length, int) or length < 1:
        raise Error(
            "Bincount `minlength` must be specified and must be a constant. On the IPU MK2 platform the minimum length "
            "is also the maximum length. Call torch.bincount(x, minlength=n) with a plain number."
            f"{source_lines.called_from()}"
        )
    return func(*args, **kwargs)


def _with_boolean_masks(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensor, *others = args
    return func(tensor, *map(_boolean, others[:1]), *others[1:], **kwargs)


def _boolean(index: Any) -> Any:
    if isinstance(index, Tensor) and index.dtype is torch.uint8:
        return index.bool()
    return type(index)(map(_boolean, index)) if type(index) in (tuple, list) else index


_FORMS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    functional.one_hot: _one_hot,
    torch.bincount: _bincount,
    Tensor.bincount: _bincount,
    Tensor.__setitem__: _with_boolean_masks,
    Tensor.__getitem__: _with_boolean_masks,
    Tensor.masked_fill: _with_boolean_masks,
    torch.masked_fill: _with_boolean_masks,
    Tensor.masked_fill_: _with_boolean_masks,
    Tensor.masked_scatter: _with_boolean_masks,
    torch.masked_scatter: _with_boolean_masks,
    Tensor.masked_scatter_: _with_boolean_masks,
    Tensor.index_put_: _with_boolean_masks,
    Tensor.index_put: _with_boolean_masks,
    torch.index_put: _with_boolean_masks,
}
