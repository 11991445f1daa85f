"""Computes the mask of ReLU's gradient from the input of the normalisation before it.

The gradient of ReLU reads the result of ReLU. After a normalisation, that is a factor and a term applied to an image
that the gradient of the normalisation reads anyway. Recomputing the mask from it saves reading one image, twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from pilotage.compiler.lowerings import TO_MEMORY
from pilotage.compiler.rewrites.insertion import insert_call

aten, prims = torch.ops.aten, torch.ops.prims


def mask_from_relu_input(graph: GraphModule) -> None:
    """Rewrite masks of ReLU results that are affine in an image which is read later anyway."""
    order = {node: number for number, node in enumerate(graph.graph.nodes)}
    for node in list(graph.graph.nodes):
        parts = _mask_of_affine(node)
        if parts is None or max(order[user] for user in parts[0].users) < order[node]:
            continue
        image, factor, term = parts
        with graph.graph.inserting_before(node):
            wide = insert_call(graph, prims.convert_element_type.default, image, torch.float32)
            value = insert_call(graph, aten.add.Tensor, insert_call(graph, aten.mul.Tensor, wide, factor), term)
            # Round as before ReLU: very small values become zero in 16 bits.
            stored = insert_call(graph, prims.convert_element_type.default, value, image.meta["val"].dtype)
            mask = insert_call(graph, aten.le.Scalar, stored, 0)
        order |= dict.fromkeys((wide, value, stored, mask), order[node])
        node.replace_all_uses_with(mask)
        graph.graph.erase_node(node)


def _mask_of_affine(node: Node) -> tuple[Node, Node, Node] | None:
    """The image, factor and term of a mask, or None."""
    if node.target is not aten.le.Scalar or node.args[1] != 0:
        return None
    found: list[Any] = []
    value: Any = node.args[0]
    for operation in (aten.relu.default, prims.convert_element_type.default, aten.add.Tensor, aten.mul.Tensor):
        if not isinstance(value, Node) or value.target is not operation:
            return None
        value, *others = value.args
        found += [other for other in others if isinstance(other, Node)]
    if len(found) != 2 or not all(each.meta.get(TO_MEMORY) for each in found):
        return None
    term, factor = found
    image: Any = value.args[0] if value.target is prims.convert_element_type.default else value
    rectified: Any = node.args[0]
    # The argument of ReLU must have the type of the image.
    return (image, factor, term) if image.meta["val"].dtype == rectified.meta["val"].dtype else None
