"""Gradients of max pooling, computed from the offset of each maximum in its window.

Inductor stores the offset as a byte, and converts it to an index into the whole image for each window that contains an
element, before it compares. The offset can be compared directly.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from pilotage.compiler.rewrites.folding import stored_like

aten = torch.ops.aten

_SCHEMA = (
    "max_pool_gradient(Tensor gradient, Tensor offsets, int[] size, bool channels_last, "
    "int[] kernel, int[] stride, int[] padding) -> Tensor"
)


def gather_max_pool_gradients(graph: GraphModule) -> None:
    """Rewrite gradients of max pooling whose offsets are known."""
    from pilotage.torch_private import max_pool_offsets_to_indices

    for node in list(graph.graph.nodes):
        if node.target is not aten.max_pool2d_with_indices_backward.default:
            continue
        given: Any = node.args
        kernel, stride, padding, dilation = _in_pairs(*given[2:6])
        # Inductor accepts only pairs.
        node.args = (given[0], given[1], kernel, stride, padding, dilation, given[6], given[7])
        if given[7].target is max_pool_offsets_to_indices and dilation == [1, 1]:
            like = node.meta["val"]
            stored = stored_like(like) is torch.channels_last
            arguments = (given[0], given[7].args[0], list(like.shape), stored, kernel, stride, padding)
            with graph.graph.inserting_before(node):
                spread = graph.graph.call_function(_operation()[0], arguments)
            spread.meta = dict(node.meta)
            node.replace_all_uses_with(spread)
            graph.graph.erase_node(node)


def _in_pairs(kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[list[int]]:
    """Arguments as pairs for rows and columns: one number means both, and no stride means the kernel size."""
    return [[*each, *each] if len(each) == 1 else list(each) for each in (kernel, stride or kernel, padding, dilation)]


@cache
def _operation() -> tuple[Any, torch.library.Library]:
    """The operation, which only Inductor uses, and the library that keeps it alive."""
    from pilotage.torch_private import lowering

    library = torch.library.Library("pilotage_native", "FRAGMENT")
    library.define(_SCHEMA)
    torch.library.register_fake("pilotage_native::max_pool_gradient", _empty, lib=library)
    operation = torch.ops.pilotage_native.max_pool_gradient.default
    lowering.register_lowering(operation, type_promotion_kind=None)(_lower)
    return operation, library


def _empty(gradient: Tensor, _: Tensor, size: list[int], channels_last: bool, *window: list[int]) -> Tensor:
    """The fake kernel: an empty result."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return torch.empty(size, dtype=gradient.dtype, device=gradient.device, memory_format=layout)


def _lower(gradient: Any, offsets: Any, size: Any, channels_last: bool, kernel: Any, stride: Any, padding: Any) -> Any:
    from pilotage.torch_private import FloorDiv, inductor_ir, inductor_ops

    ops: Any = inductor_ops
    gradient.realize_hint()
    load_gradient, load_offset = gradient.make_loader(), offsets.make_loader()
    pooled = gradient.get_size()[-2:]
    wide = torch.promote_types(gradient.get_dtype(), torch.float32)
    overlap = [-(-kernel[axis] // stride[axis]) for axis in (0, 1)]

    def windows(axis: int, place: Any) -> list[tuple[Any, Any, Any]]:
        """Windows that may contain an element, its offset in each, and whether they contain it."""
        found = []
        for number in range(overlap[axis]):
            window = FloorDiv(place + padding[axis], stride[axis]) - number
            inside = place + padding[axis] - window * stride[axis]
            window_number = ops.index_expr(window, torch.int32)
            lies = ops.lt(window_number, ops.index_expr(pooled[axis], torch.int32))
            lies = ops.and_(lies, ops.ge(window_number, ops.constant(0, torch.int32)))
            if number or stride[axis] > kernel[axis]:
                lies = ops.and_(
                    lies, ops.lt(ops.index_expr(inside, torch.int32), ops.constant(kernel[axis], torch.int32))
                )
            found.append((window, inside, lies))
        return found

    def point(index: Any) -> Any:
        *before, row, column = index
        total = None
        for down, within_rows, lies_down in windows(0, row):
            for across, within_columns, lies_across in windows(1, column):

                def part(
                    place: Any = (*before, down, across), inside: Any = within_rows * kernel[1] + within_columns
                ) -> Any:
                    here = ops.to_dtype(load_offset(place), torch.int32)
                    is_maximum = ops.eq(here, ops.index_expr(inside, torch.int32))
                    value = ops.to_dtype(load_gradient(place), wide)
                    return ops.where(is_maximum, value, ops.constant(0.0, wide))

                value = ops.masked(ops.and_(lies_down, lies_across), part, 0.0)
                total = value if total is None else ops.add(total, value)
        return ops.to_dtype(total, gradient.get_dtype())

    result = inductor_ir.Pointwise.create(
        device=gradient.get_device(), dtype=gradient.get_dtype(), inner_fn=point, ranges=list(size)
    )
    return inductor_ir.ExternKernel.require_channels_last(result) if channels_last else result
