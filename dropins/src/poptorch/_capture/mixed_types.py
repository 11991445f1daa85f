"""PopTorch's rules for operands of different floating-point types.

PopTorch takes the type of a result from torch, but unlike torch it does not require both operands to have the same
type. A half-precision activation stays half when it meets float32 weights: the weights are cast for the operation and
keep their own type, so they are updated as float32. Torch's promotion rules apply to all other functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

__all__ = ["MixedTypes", "recurrent_inputs_of_any_type"]

Form: TypeAlias = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Calls a function on operands of different types."""


@contextmanager
def recurrent_inputs_of_any_type() -> Iterator[None]:
    """Let recurrent modules take inputs of another type than their weights in the block."""
    check = nn.RNNBase.check_input

    def check_shape(self: nn.RNNBase, input: Tensor, batch_sizes: Tensor | None) -> None:
        check(self, input.to(next(self.parameters()).dtype), batch_sizes)

    nn.RNNBase.check_input = check_shape  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.RNNBase.check_input = check  # type: ignore[method-assign]


class MixedTypes(TorchFunctionMode):
    """While active, functions that need operands of one type get them."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function, on converted operands if they differ in type."""
        kwargs = kwargs or {}
        form = FORMS.get(func)
        if form is None:
            return _in_float(func, args, kwargs) if func in WITHOUT_HALF else func(*args, **kwargs)
        if len(_floating_types((args, kwargs))) < 2:
            return func(*args, **kwargs)
        return form(func, args, kwargs)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _floating_types(value: Any) -> list[torch.dtype]:
    return list(dict.fromkeys(tensor.dtype for tensor in _tensors(value) if tensor.is_floating_point()))


def _cast(value: Any, dtype: torch.dtype) -> Any:
    """A value with all its floating-point tensors in one type."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, (tuple, list)):
        return type(value)(_cast(item, dtype) for item in value)
    if isinstance(value, dict):
        return {name: _cast(item, dtype) for name, item in value.items()}
    return value


def _as_argument(position: int, name: str) -> Form:
    """Compute in the type of one argument."""

    def call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leader = args[position] if position < len(args) else kwargs.get(name)
        if not isinstance(leader, Tensor) or not leader.is_floating_point():
            return func(*args, **kwargs)
        cast, named = _cast(list(args), leader.dtype), _cast(kwargs, leader.dtype)
        if position < len(args):
            # A function that writes into this argument must get it as it is.
            cast[position] = leader
        return func(*cast, **named)

    return call


def _product(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A product has the type of its first matrix, or of the vector that a matrix is multiplied by."""
    left, right = (*args, *kwargs.values())[:2]
    dtype = right.dtype if right.dim() == 1 and left.dim() > 1 else left.dtype
    return func(*_cast(args, dtype), **_cast(kwargs, dtype))


def _promoted(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute in the widest type."""
    dtypes = _floating_types((args, kwargs))
    widest = dtypes[0]
    for dtype in dtypes[1:]:
        widest = torch.promote_types(widest, dtype)
    return func(*_cast(args, widest), **_cast(kwargs, widest))


def _in_float(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute half operands in float32, and round the result to the widest of their types."""
    dtypes = _floating_types((args, kwargs))
    if torch.float16 not in dtypes:
        return func(*args, **kwargs)
    result = func(*_cast(args, torch.float32), **_cast(kwargs, torch.float32))
    return _cast(result, torch.float16) if dtypes == [torch.float16] else result


def _einsum(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first = _floating_types(args)[0]
    return func(*_cast(args, first), **kwargs)


_NORM_ARGUMENTS = ("input", "running_mean", "running_var", "weight", "bias")


def _normalised(order: Sequence[str], func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Weight and bias are rounded to the type of the input, and the running statistics keep theirs."""
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    rest = args[len(order) :]
    dtype = given["input"].dtype
    kept = {name: given[name] for name in ("running_mean", "running_var") if given.get(name) is not None}
    # Torch's kernels take parameters and statistics of one type: that of the input, or float32 beside a smaller one.
    inside = dtype if all(tensor.dtype == dtype for tensor in kept.values()) else torch.float32
    for name in ("weight", "bias"):
        if given.get(name) is not None:
            given[name] = given[name].to(dtype).to(inside)
    own = {name: tensor.detach().to(inside) for name, tensor in kept.items()}
    given.update(own)
    result = func(*(given.pop(name) for name in order if name in given), *rest, **given)
    for name, tensor in kept.items():
        if own[name].dtype != tensor.dtype:
            with torch.no_grad():
                tensor.copy_(own[name])
    return result


def _forms(form: Form, functions: Iterable[Callable[..., Any]]) -> dict[Callable[..., Any], Form]:
    return dict.fromkeys(functions, form)


def _named(*names: str) -> Iterator[Callable[..., Any]]:
    """The functions of torch and the methods of tensors that have these names."""
    for name in names:
        yield from (getattr(place, name) for place in (torch, Tensor) if hasattr(place, name))


FORMS: Mapping[Callable[..., Any], Form] = {
    **_forms(
        _as_argument(0, "input"),
        [
            functional.linear,
            *_named("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
            *_named("layer_norm", "group_norm", "rms_norm", "prelu"),
            functional.layer_norm,
            functional.group_norm,
            functional.rms_norm,
            functional.nll_loss,
            functional.cross_entropy,
            *_named("index_put", "index_put_", "index_add", "index_add_", "index_copy", "index_copy_"),
            *_named("scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
            *_named("masked_scatter", "masked_scatter_", "addmm_", "baddbmm_", "addbmm_", "addmv_", "addr_"),
            Tensor.__setitem__,
        ],
    ),
    **_forms(_as_argument(0, "query"), [functional.multi_head_attention_forward]),
    **_forms(_as_argument(0, "query"), [functional.scaled_dot_product_attention]),
    **_forms(_as_argument(1, "weight"), [functional.embedding_bag]),
    **_forms(_as_argument(0, "input1"), [functional.bilinear, torch.bilinear]),
    **_forms(_as_argument(1, "mat1"), _named("addmm", "sspaddmm")),
    **_forms(_as_argument(1, "batch1"), _named("addbmm")),
    **_forms(_as_argument(2, "batch2"), _named("baddbmm")),
    **_forms(_as_argument(2, "vec"), _named("addmv")),
    **_forms(_as_argument(1, "other"), [Tensor.__rmatmul__]),
    **_forms(_product, [*_named("mm", "bmm", "matmul", "mv", "dot", "vdot", "inner"), Tensor.__matmul__]),
    **_forms(_einsum, [torch.einsum, torch.tensordot]),
    **_forms(
        _promoted,
        [
            functional.binary_cross_entropy,
            functional.binary_cross_entropy_with_logits,
            functional.huber_loss,
            functional.l1_loss,
            functional.mse_loss,
            functional.smooth_l1_loss,
            *_named("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"),
        ],
    ),
    functional.batch_norm: partial(_normalised, _NORM_ARGUMENTS),
    functional.instance_norm: partial(_normalised, _NORM_ARGUMENTS),
    torch.batch_norm: partial(_normalised, ("input", "weight", "bias", "running_mean", "running_var")),
    torch.instance_norm: partial(_normalised, ("input", "weight", "bias", "running_mean", "running_var")),
}
"""How to call functions of torch that need operands of one type."""

WITHOUT_HALF: frozenset[Callable[..., Any]] = frozenset(
    [
        functional.avg_pool3d,
        functional.ctc_loss,
        functional.multi_margin_loss,
        functional.multilabel_margin_loss,
        functional.pdist,
        torch.cdist,
        torch.ctc_loss,
    ]
)
"""Functions that PopTorch computes in half precision, and for which torch has no half-precision kernel everywhere."""
