"""Folds chains of per-channel arithmetic into one factor per image and one term.

A normalisation subtracts, divides, multiplies and adds values per channel, and its gradient does so with two images.
The compiler would repeat all of that for each element, roots and divisions included. Here such a chain becomes one
factor for each image and one term, computed once per channel. This applies only to 16-bit images. It changes rounding
in the last digits of float32, far below the precision of the images; where eager gives exactly zero, as for a constant
channel, the result may be a tiny number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.compiler.lowerings import TO_MEMORY
from pilotage.compiler.rewrites.insertion import insert_call

FEWER = 16
"""The image must have at least this many times more elements than channels."""

_SHORT = frozenset({torch.bfloat16, torch.float16})

aten, prims = torch.ops.aten, torch.ops.prims
_ADD, _SUBTRACT, _MULTIPLY = aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor


@dataclass(frozen=True)
class Affine:
    """A sum of images, each with a factor (None: one), and a term (None: zero)."""

    factors: Mapping[Node, Node | None]
    term: Node | None = None
    operands: int = 0
    """The number of per-channel values that it was made from."""

    @property
    def values(self) -> list[Node]:
        """The per-channel values that it needs."""
        return [value for value in (*self.factors.values(), self.term) if value is not None]


def gather_affine(graph: GraphModule) -> None:
    """Rewrite chains of per-channel arithmetic."""
    forms: dict[Node, Affine] = {}
    for node in list(graph.graph.nodes):
        with graph.graph.inserting_before(node):
            form = _form(graph, node, forms)
        if form is not None:
            forms[node] = form
    for node, form in forms.items():
        if form.operands > len(form.values) and any(user not in forms for user in node.users):
            _rebuild(graph, node, form)
    graph.graph.eliminate_dead_code()


def _form(graph: GraphModule, node: Node, forms: Mapping[Node, Affine]) -> Affine | None:
    """A node in affine form; None if it has none."""
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, Tensor) or value.dtype != torch.float32:
        return None
    if node.target is prims.convert_element_type.default:
        return _image(node.args[0], node, forms)
    if node.target not in (_ADD, _SUBTRACT, _MULTIPLY) or node.kwargs or len(node.args) != 2:
        return None
    form, other = (_image(each, node, forms) for each in node.args)
    if form is None:
        return None
    if other is None:
        known = _is_for_channels(node.args[1], node)
        return _with_value(graph, form, node.target, node.args[1]) if known else None
    if node.target is _MULTIPLY or form.factors.keys() & other.factors.keys():
        return None
    return _sum(graph, form, node.target, other)


def _image(node: Any, user: Node, forms: Mapping[Node, Affine]) -> Affine | None:
    """A node as a sum of images; None unless it is a 16-bit image or an affine form."""
    if node in forms:
        return forms[node]
    value = node.meta.get("val") if isinstance(node, Node) else None
    is_image = isinstance(value, Tensor) and value.dtype in _SHORT and value.shape == user.meta["val"].shape
    return Affine({node: None}) if is_image else None


def _is_for_channels(node: Any, user: Node) -> bool:
    """Whether a value has one number per channel, and the image is much larger."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    shape = user.meta["val"].shape
    if not isinstance(value, Tensor) or not value.is_floating_point() or len(shape) < 3:
        return False
    aligned = (1,) * (len(shape) - value.dim()) + tuple(value.shape)
    return aligned == (1, shape[1], *[1] * (len(shape) - 2)) and shape[1] * FEWER <= shape.numel()


def _with_value(graph: GraphModule, form: Affine, operation: Any, given: Any) -> Affine:
    """A form combined with a per-channel value."""
    value = insert_call(graph, prims.convert_element_type.default, given, torch.float32)
    if operation is not _MULTIPLY:
        return Affine(form.factors, _combined(graph, form.term, operation, value), form.operands + 1)
    factors = {
        node: value if factor is None else insert_call(graph, _MULTIPLY, factor, value)
        for node, factor in form.factors.items()
    }
    term = None if form.term is None else insert_call(graph, _MULTIPLY, form.term, value)
    return Affine(factors, term, form.operands + 1)


def _sum(graph: GraphModule, form: Affine, operation: Any, other: Affine) -> Affine | None:
    """The sum or difference of two forms; None if an image without a factor is subtracted."""
    factors = dict(form.factors)
    for node, factor in other.factors.items():
        if operation is _ADD:
            factors[node] = factor
        elif factor is None:
            return None
        else:
            factors[node] = insert_call(graph, aten.neg.default, factor)
    term = form.term if other.term is None else _combined(graph, form.term, operation, other.term)
    return Affine(factors, term, form.operands + other.operands)


def _combined(graph: GraphModule, term: Node | None, operation: Any, value: Node) -> Node:
    """A term with a value added or subtracted; None is zero."""
    if term is not None:
        return insert_call(graph, operation, term, value)
    return value if operation is _ADD else insert_call(graph, aten.neg.default, value)


def _rebuild(graph: GraphModule, node: Node, form: Affine) -> None:
    with graph.graph.inserting_before(node):
        total: Node | None = None
        for image, factor in form.factors.items():
            wide = insert_call(graph, prims.convert_element_type.default, image, torch.float32)
            part = wide if factor is None else insert_call(graph, _MULTIPLY, wide, factor)
            total = part if total is None else insert_call(graph, _ADD, total, part)
        assert total is not None
        if form.term is not None:
            total = insert_call(graph, _ADD, total, form.term)
    for value in form.values:
        value.meta[TO_MEMORY] = True
    node.replace_all_uses_with(total)
