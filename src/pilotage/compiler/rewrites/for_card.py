"""Runs the rewrites for a card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch.fx import GraphModule

from pilotage.compiler.changes import Changes
from pilotage.compiler.rewrites.affine import gather_affine
from pilotage.compiler.rewrites.batch_counters import add_counters_together
from pilotage.compiler.rewrites.few_channels import fold_few_channels
from pilotage.compiler.rewrites.large_tensors import separate_large_tensors
from pilotage.compiler.rewrites.max_pool_gradients import gather_max_pool_gradients
from pilotage.compiler.rewrites.relu_masks import mask_from_relu_input
from pilotage.compiler.rewrites.widened_products import multiply_narrow_numbers

NOT_DECOMPOSED = frozenset({torch.ops.aten.max_pool2d_with_indices_backward.default})
"""Operations that Inductor must not decompose before our rewrites."""

POOLING = "gradients of max pooling"
"""The rewrite of operations that are not decomposed."""

REWRITES: Mapping[str, Callable[[GraphModule, torch.device], None]] = {
    "batch counters": lambda graph, _: add_counters_together(graph),
    "convolutions with few channels": fold_few_channels,
    POOLING: lambda graph, _: gather_max_pool_gradients(graph),
    "chains of arithmetic per channel": lambda graph, _: gather_affine(graph),
    "masks of ReLU": lambda graph, _: mask_from_relu_input(graph),
    "products of widened tensors": lambda graph, _: multiply_narrow_numbers(graph),
    "large tensors apart": lambda graph, _: separate_large_tensors(graph),
}
"""The rewrites by name, in the order in which they run."""


def rewrite_for_card(graph: GraphModule, device: torch.device, changes: Changes | None = None) -> None:
    """Rewrite a graph with shape metadata, whose only writes are copies at its end."""
    changes = changes or Changes()
    for name, rewrite in REWRITES.items():
        changes.make(name, partial(_rewritten, rewrite, graph, device), partial(_nodes, graph))
    graph.recompile()


def _rewritten(rewrite: Callable[[GraphModule, torch.device], None], graph: GraphModule, device: torch.device) -> None:
    """Rewrite a graph and check that it is still well-formed."""
    rewrite(graph, device)
    graph.graph.lint()


def _nodes(graph: GraphModule) -> list[object]:
    return [(node, node.target, node.args) for node in graph.graph.nodes]


def not_decomposed(device: torch.device, changes: Changes) -> frozenset[object]:
    """Operations that Inductor must not decompose, because one of our rewrites replaces them."""
    return NOT_DECOMPOSED if device.type == "cuda" and POOLING not in changes.without else frozenset()
