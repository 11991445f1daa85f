"""PopTorch's operations under ``torch.ops.poptorch``, for programs that call them directly.

Outside of a capture the markers do nothing, and an operation on one tensor returns it unchanged, as in PopTorch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from pilotage.engine import in_scope
from poptorch._capture.capturing import current_run
from poptorch.enums import OverlapMode
from poptorch.ops import beam_search, custom, identities, overlap, points, printing, slicing
from poptorch.ops.annotations import clear_attribute, set_attribute
from poptorch.poptorch_core import Error

_LIBRARY = torch.library.Library("poptorch", "FRAGMENT")
_FLOAT_FORMATS = ("auto", "fixed", "scientific", "none")
_REDUCTIONS = ("sum", "mean", "none")
_TYPES = {"FLOAT": torch.float32, "FLOAT16": torch.float16}


def _operation(schema: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function under this schema; captures see what the function does, and not the operation."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _LIBRARY.impl(_LIBRARY.define(schema), function, "CompositeImplicitAutograd")
        return function

    return register


# Blocks, names and attributes


@_operation("begin_ipu_block(int stage_id, int phase_id, int ipu_id) -> ()")
def _begin_ipu_block(stage_id: int, phase_id: int, ipu_id: int) -> None:
    run = current_run()
    if run is not None:
        run.blocks.begin(stage_id, phase_id, ipu_id)


@_operation("end_ipu_block() -> ()")
def _end_ipu_block() -> None:
    run = current_run()
    if run is not None:
        run.blocks.close()


_scopes: ContextVar[tuple[AbstractContextManager[None], ...]] = ContextVar("poptorch_name_scopes", default=())


@_operation("push_name_scope(str name) -> ()")
def _push_name_scope(name: str) -> None:
    scope = in_scope(name)
    scope.__enter__()
    _scopes.set((*_scopes.get(), scope))


@_operation("pop_name_scope() -> ()")
def _pop_name_scope() -> None:
    *outer, innermost = _scopes.get()
    _scopes.set(tuple(outer))
    innermost.__exit__(None, None, None)


@_operation("set_attribute(str attribute, str key, str value) -> ()")
def _set_attribute(attribute: str, key: str, value: str) -> None:
    set_attribute(attribute, key, value)


@_operation("clear_attribute(str attribute, str key) -> ()")
def _clear_attribute(attribute: str, key: str) -> None:
    clear_attribute(attribute, key)


@_operation("optimizer_group(int group, Tensor[] inputs) -> ()")
def _optimizer_group(group: int, inputs: list[Tensor]) -> None:
    """Nothing: the optimizer itself defines which parameters are in which group."""


@_operation("begin_multi_conv() -> ()")
def _begin_multi_conv() -> None:
    run = current_run()
    if run is not None:
        run.begin_multi_conv()


@_operation(
    "end_multi_conv(float[]? available_memory_proportions, int[]? partials_types, int? plan_type, "
    "int? per_conv_reserved_tiles, float? cycle_back_off, int[]? enableConvDithering) -> ()"
)
def _end_multi_conv(*settings: Any) -> None:
    run = current_run()
    if run is not None:
        run.end_multi_conv(failed=False)


# Identities


@_operation(
    "ipu_print_tensor(Tensor self, str title, int print_gradient, int summarize_threshold, int edge_items, "
    "int max_line_width, int digits, int float_format, str separator, str open_bracket, str close_bracket) -> Tensor"
)
def _ipu_print_tensor(
    tensor: Tensor, title: str, print_gradient: int, summarize_threshold: int, edge_items: int, max_line_width: int,
    digits: int, float_format: int, separator: str, open_bracket: str, close_bracket: str,
) -> Tensor:  # fmt: skip
    if current_run() is None:
        return tensor
    return printing.ipu_print_tensor(
        tensor, title, bool(print_gradient), summarize_threshold, edge_items, max_line_width, digits,
        _FLOAT_FORMATS[float_format], separator, open_bracket, close_bracket,
    )  # fmt: skip


@_operation("nop(Tensor self) -> Tensor")
def _nop(tensor: Tensor) -> Tensor:
    return tensor


@_operation("recomputation_checkpoint(Tensor self) -> Tensor")
def _recomputation_checkpoint(tensor: Tensor) -> Tensor:
    return tensor if current_run() is None else identities.recomputationCheckpoint(tensor)


@_operation("set_matmul_serialization(Tensor matmul, str mode, int factor, bool keep_precision) -> Tensor")
def _set_matmul_serialization(matmul: Tensor, mode: str, factor: int, keep_precision: bool) -> Tensor:
    return matmul


@_operation("set_available_memory(Tensor t, float mem) -> Tensor")
def _set_available_memory(tensor: Tensor, mem: float) -> Tensor:
    return tensor


@_operation("set_overlap_for_input(Tensor t, str mode) -> Tensor")
def _set_overlap_for_input(tensor: Tensor, mode: str) -> Tensor:
    return overlap.set_overlap_for_input(tensor, OverlapMode(mode))


@_operation("set_overlap_for_output(Tensor t, str mode) -> Tensor")
def _set_overlap_for_output(tensor: Tensor, mode: str) -> Tensor:
    return overlap.set_overlap_for_output(tensor, OverlapMode(mode))


# Computations


@_operation("identity_loss(Tensor x, int reduction) -> Tensor")
def _identity_loss(x: Tensor, reduction: int) -> Tensor:
    if not 0 <= reduction < len(_REDUCTIONS):
        raise Error(f"poptorch.identity_loss takes 0 (sum), 1 (mean) or 2 (none) as reduction, not {reduction}.")
    loss = identities.identity_loss(x, _REDUCTIONS[reduction])
    return loss.clone() if loss is x else loss


@_operation("internal_cast(Tensor self, str dtype) -> Tensor")
def _internal_cast(tensor: Tensor, dtype: str) -> Tensor:
    if current_run() is None:
        # As PopTorch does on the host, whatever the name says.
        return tensor.float() if dtype == "FLOAT16" else tensor
    if dtype not in _TYPES:
        raise Error(f"poptorch.internal_cast takes {' or '.join(_TYPES)} as type, not {dtype!r}.")
    return tensor.to(_TYPES[dtype])


@_operation("dynamic_slice(Tensor self, int dim, Tensor start, int size, int step) -> Tensor")
def _dynamic_slice(tensor: Tensor, dim: int, start: Tensor, size: int, step: int) -> Tensor:
    return slicing.dynamic_slice(tensor, dim, start, size, step)


@_operation("dynamic_update(Tensor self, Tensor src, int dim, Tensor start, int size) -> Tensor")
def _dynamic_update(tensor: Tensor, src: Tensor, dim: int, start: Tensor, size: int) -> Tensor:
    return slicing.dynamic_update(tensor, src, dim, start, size)


@_operation(
    "ctc_beam_search_decoder(Tensor probs, Tensor lengths, int blank, int beam_width, int top_paths) "
    "-> (Tensor, Tensor, Tensor)"
)
def _ctc_beam_search_decoder(
    probs: Tensor, lengths: Tensor, blank: int, beam_width: int, top_paths: int
) -> tuple[Tensor, Tensor, Tensor]:
    return beam_search.ctc_beam_search_decoder(probs, lengths, blank, beam_width, top_paths)


@_operation("fps(Tensor src, int[] ptr, float ratio, bool random_start) -> Tensor")
def _fps(src: Tensor, ptr: list[int], ratio: float, random_start: bool) -> Tensor:
    return points.fps(src, list(ptr), ratio, random_start)


@_operation("nearest(Tensor x, Tensor y, Tensor batch_x, Tensor batch_y) -> Tensor")
def _nearest(x: Tensor, y: Tensor, batch_x: Tensor, batch_y: Tensor) -> Tensor:
    return points.nearest(x, y, batch_x, batch_y)


@_operation("nearest_batch_list(Tensor x, Tensor y, int[] batch_x, int[] batch_y) -> Tensor")
def _nearest_batch_list(x: Tensor, y: Tensor, batch_x: list[int], batch_y: list[int]) -> Tensor:
    return points.nearest(x, y, list(batch_x), list(batch_y))


@_operation(
    "custom_operation(Tensor[] inputs, str name, str domain, int domain_version, int num_outputs, Tensor[] outputs, "
    "str attributes) -> Tensor[]"
)
def _custom_operation(
    inputs: list[Tensor], name: str, domain: str, domain_version: int, num_outputs: int, outputs: list[Tensor],
    attributes: str,
) -> list[Tensor]:  # fmt: skip
    """Runs the implementation in a capture; ``attributes`` are JSON."""
    if current_run() is None:
        return outputs
    return custom.custom_op(inputs, name, domain, domain_version, outputs, json.loads(attributes or "{}"))


# Bounds of code that PopTorch captures separately


@_operation("start_for_loop(Tensor[] inputs) -> ()")
def _start_for_loop(inputs: list[Tensor]) -> None:
    """The body runs once, until `end_for_loop`."""


@_operation("end_for_loop(Tensor[] outputs, Tensor[] inputs, int trip_count) -> Tensor[]")
def _end_for_loop(outputs: list[Tensor], inputs: list[Tensor], trip_count: int) -> list[Tensor]:
    if current_run() is not None and trip_count != 1:
        raise Error(
            f"The body between torch.ops.poptorch.start_for_loop and end_for_loop ran once, and not {trip_count} "
            "times. "
            "Call poptorch.for_loop(count, body, inputs), which knows the body."
        )
    return outputs


_branches: ContextVar[tuple[list[Tensor], ...]] = ContextVar("poptorch_open_branches", default=())


@_operation("start_if_block(Tensor condition) -> ()")
def _start_if_block(condition: Tensor) -> None:
    """What follows belongs to the branch for True."""


@_operation("start_else_block(Tensor[] outputs_true) -> ()")
def _start_else_block(outputs_true: list[Tensor]) -> None:
    if current_run() is not None:
        _branches.set((*_branches.get(), list(outputs_true)))


@_operation("end_if_block(Tensor[] outputs, Tensor condition) -> Tensor[]")
def _end_if_block(outputs: list[Tensor], condition: Tensor) -> list[Tensor]:
    if current_run() is None:
        return outputs
    *open_branches, outputs_true = _branches.get()
    _branches.set(tuple(open_branches))
    chosen = condition.reshape(()).to(torch.bool)
    return [torch.where(chosen, *pair) for pair in zip(outputs_true, outputs, strict=True)]


@_operation("call_cpu_op(Tensor[] inputs, str name) -> ()")
def _call_cpu_op(inputs: list[Tensor], name: str) -> None:
    """Nothing: the operations that follow are captured like all others."""


@_operation("end_cpu_op(Tensor[] output) -> Tensor[]")
def _end_cpu_op(output: list[Tensor]) -> list[Tensor]:
    return output
