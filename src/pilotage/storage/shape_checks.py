"""Checks shapes that kernels of torch rely on without checking them.

Autograd calls these operations with tensors that forward saved, so their shapes always fit. A file can call them with
anything, and many kernels would then read or write out of bounds. Each was found by calling it with wrong shapes, on
tensors that end at a guard page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from pilotage.errors import ProgramFileError
from pilotage.torch_private import CDIST_FORWARD, OpOverload, schema_of

Arguments: TypeAlias = Mapping[str, Any]
_Wanted: TypeAlias = Iterator[tuple[str, Sequence[int]]]
"""Names of arguments, and their required shapes."""

_MAXIMUM_ORDER = 1000
_LSTM = 2
"""The number of this kind of recurrent layer in torch."""


def check_shapes(operation: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise if fake tensors have shapes that the kernel of an operation does not expect."""
    rule = _RULES.get(schema_of(operation).name)
    if rule is None:
        return
    arguments = named_arguments(operation, args, kwargs)
    for name, shape in rule(arguments):
        given = arguments.get(name)
        if given is not None and tuple(given.shape) != tuple(shape):
            raise ProgramFileError(
                f"The program calls {operation} with a tensor of shape {list(given.shape)} as {name}, instead of "
                f"{list(shape)}. The file was modified or is damaged."
            )


def named_arguments(operation: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, including defaults."""
    schema = schema_of(operation).arguments
    defaults = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    return {**defaults, **{argument.name: value for argument, value in zip(schema, args, strict=False)}, **kwargs}


def _like(name: str, *others: str) -> Callable[[Arguments], _Wanted]:
    """All arguments have the shape of the first."""

    def rule(given: Arguments) -> _Wanted:
        yield from ((other, given[name].shape) for other in others)

    return rule


def _forward(forward: OpOverload, *names: str, result: str = "grad_output") -> Callable[[Arguments], _Wanted]:
    """A gradient has the shape of forward's result."""

    def rule(given: Arguments) -> _Wanted:
        made = forward(*(given[name] for name in names))
        shape = (made[0] if isinstance(made, tuple) else made).shape
        yield result, shape
        if "indices" in given:
            yield "indices", shape

    return rule


def _adaptive(dimensions: int) -> Callable[[Arguments], _Wanted]:
    """A gradient has the batch and channels of the input; the other sizes are free."""

    def rule(given: Arguments) -> _Wanted:
        gradient, own = given["grad_output"], given["self"]
        yield "grad_output", (*own.shape[:-dimensions], *gradient.shape[-dimensions:])
        if "indices" in given:
            yield "indices", gradient.shape

    return rule


def _fractional(dimensions: int) -> Callable[[Arguments], _Wanted]:
    def rule(given: Arguments) -> _Wanted:
        shape = (*given["self"].shape[:-dimensions], *given["output_size"])
        yield "grad_output", shape
        yield "indices", shape

    return rule


def _of_channels(*gradients: str) -> Callable[[Arguments], _Wanted]:
    """Per-channel arguments have an element for each channel; statistics that were not saved are empty."""

    def rule(given: Arguments) -> _Wanted:
        own: Tensor = given["input"]
        if own.dim() < 2:
            raise ProgramFileError(
                "The program normalizes a tensor without channels. The file was modified or is damaged."
            )
        yield from ((name, own.shape) for name in gradients)
        for name in ("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var"):
            tensor = given.get(name)
            unsaved = name.startswith("save") and not given.get("train", given.get("update", True))
            if tensor is not None and not (unsaved and tensor.numel() == 0):
                yield name, own.shape[1:2]

    return rule


def _of_layers(given: Arguments) -> _Wanted:
    own, count = given["input"].shape, len(given["normalized_shape"])
    statistics = (*own[: len(own) - count], *([1] * count))
    yield "grad_out", own
    yield from ((name, statistics) for name in ("mean", "rstd"))
    yield from ((name, own[len(own) - count :]) for name in ("weight", "bias"))


def _weight_norm(given: Arguments) -> _Wanted:
    own, dimension = given.get("v", given.get("saved_v")).shape, given["dim"]
    norms = [size if position == dimension % len(own) else 1 for position, size in enumerate(own)]
    yield "grad_w", own
    yield from ((name, norms) for name in ("g", "saved_g", "saved_norms"))


def _pair_distances(given: Arguments) -> _Wanted:
    points = given["self"].shape[0]
    yield from ((name, [points * (points - 1) // 2]) for name in ("grad", "pdist"))


def _distances(given: Arguments) -> _Wanted:
    shape = CDIST_FORWARD(given["x1"], given["x2"], given["p"], None).shape
    yield from ((name, shape) for name in ("grad", "cdist"))


def _attention(given: Arguments) -> _Wanted:
    query, key = given["query"].shape, given["key"].shape
    if len(query) != 4 or len(key) != 4 or key[1] == 0 or query[1] % key[1]:
        raise ProgramFileError(
            "The program calls attention with heads that do not fit. The file was modified or is damaged."
        )
    yield "key", (query[0], key[1], key[2], query[3])
    yield "value", key
    yield from ((name, query) for name in ("grad_out", "out"))
    yield "logsumexp", query[:3]
    mask = given.get("attn_mask")
    if mask is not None:
        whole = (*query[:3], key[2])[-mask.dim() :]
        yield "attn_mask", [min(a, b) if a == 1 else b for a, b in zip(mask.shape, whole, strict=True)]


def _recurrent(given: Arguments) -> _Wanted:
    """One layer of an LSTM; oneDNN takes all sizes from the input and the number of hidden values."""
    own, hidden = given["input"], given["hidden_size"]
    # Backward counts them from 1.
    first = 0 if "weight0" in given else 1
    weights = [f"weight{number}" for number in range(first, first + (4 if given["has_biases"] else 2))]
    states = ("hx_", "cx_", "cx_tmp", "hy_", "cy_", "grad_hy", "grad_cy")
    results = ("output", "grad_output")
    tensors = [given[name] for name in (*weights, *states, *results) if given.get(name) is not None]
    if (
        own.dim() != 3
        or hidden < 1
        or given["mode"] != _LSTM
        or given["batch_sizes"]
        or any(tensor.dtype != own.dtype for tensor in tensors)
    ):
        raise ProgramFileError(
            "The program runs a recurrent layer that is not an LSTM over whole sequences of one type. The file was "
            "altered or is "
            "damaged."
        )
    gates, (steps, batch, features) = 4 * hidden, own.shape
    yield from zip(weights, ((gates, features), (gates, hidden), (gates,), (gates,)), strict=False)
    yield from ((name, (batch, hidden)) for name in states)
    yield from ((name, (steps, batch, hidden)) for name in results)


def _order(given: Arguments) -> _Wanted:
    if not 0 < given["p"] <= _MAXIMUM_ORDER:
        raise ProgramFileError(
            f"The program calls mvlgamma with p = {given['p']}. At most {_MAXIMUM_ORDER} is allowed."
        )
    return iter(())


_A = torch.ops.aten
_POOL = ("self", "kernel_size", "stride", "padding")
_RULES: Mapping[str, Callable[[Arguments], _Wanted]] = {
    f"aten::{name}": rule
    for name, rule in {
        "_adaptive_avg_pool2d_backward": _adaptive(2),
        "_adaptive_avg_pool3d_backward": _adaptive(3),
        "adaptive_max_pool2d_backward": _adaptive(2),
        "adaptive_max_pool3d_backward": _adaptive(3),
        "avg_pool2d_backward": _forward(_A.avg_pool2d.default, *_POOL, "ceil_mode"),
        "avg_pool3d_backward": _forward(_A.avg_pool3d.default, *_POOL, "ceil_mode"),
        "max_pool2d_with_indices_backward": _forward(
            _A.max_pool2d_with_indices.default, *_POOL, "dilation", "ceil_mode"
        ),
        "max_pool3d_with_indices_backward": _forward(
            _A.max_pool3d_with_indices.default, *_POOL, "dilation", "ceil_mode"
        ),
        "fractional_max_pool2d_backward": _fractional(2),
        "fractional_max_pool3d_backward": _fractional(3),
        **{
            f"{kind}_pad{dimensions}d_backward": _forward(
                getattr(_A, f"{kind}_pad{dimensions}d").default, "self", "padding"
            )
            for kind in ("reflection", "replication")
            for dimensions in (1, 2, 3)
        },
        **{
            f"grid_sampler_{dimensions}d_backward": _forward(
                getattr(_A, f"grid_sampler_{dimensions}d").default,
                *("input", "grid", "interpolation_mode", "padding_mode", "align_corners"),
            )
            for dimensions in (2, 3)
        },
        **dict.fromkeys(
            (
                "native_batch_norm",
                "_native_batch_norm_legit",
                "_native_batch_norm_legit_functional",
                "_native_batch_norm_legit_no_training",
                "_batch_norm_with_update",
                "_batch_norm_no_update",
                "cudnn_batch_norm",
            ),
            _of_channels(),
        ),
        "native_batch_norm_backward": _of_channels("grad_out"),
        "batch_norm_backward": _of_channels("grad_out"),
        "cudnn_batch_norm_backward": _of_channels("grad_output"),
        "native_layer_norm_backward": _of_layers,
        "_fused_rms_norm_backward": _of_layers,
        "_weight_norm_interface": _weight_norm,
        "_weight_norm_interface_backward": _weight_norm,
        "_log_softmax_backward_data": _like("output", "grad_output"),
        "_softmax_backward_data": _like("output", "grad_output"),
        "_pdist_backward": _pair_distances,
        "_cdist_backward": _distances,
        "_scaled_dot_product_flash_attention_for_cpu": _attention,
        "_scaled_dot_product_flash_attention_for_cpu_backward": _attention,
        "mkldnn_rnn_layer": _recurrent,
        "mkldnn_rnn_layer_backward": _recurrent,
        "mvlgamma": _order,
        "mvlgamma_": _order,
    }.items()
}
