"""Runs all rewrites for a card."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from pilotage.compiler.rewrites.affine import gather_affine
from pilotage.compiler.rewrites.batch_counters import add_counters_together
from pilotage.compiler.rewrites.few_channels import fold_few_channels
from pilotage.compiler.rewrites.large_tensors import separate_large_tensors
from pilotage.compiler.rewrites.max_pool_gradients import gather_max_pool_gradients
from pilotage.compiler.rewrites.relu_masks import mask_from_relu_input

NOT_DECOMPOSED = frozenset({torch.ops.aten.max_pool2d_with_indices_backward.default})
"""Operations that Inductor must not decompose before our rewrites."""


def rewrite_for_card(graph: GraphModule, device: torch.device) -> None:
    """Rewrite a graph with shape metadata, whose only writes are copies at its end."""
    add_counters_together(graph)
    fold_few_channels(graph, device)
    gather_max_pool_gradients(graph)
    gather_affine(graph)
    mask_from_relu_input(graph)
    separate_large_tensors(graph)
    graph.graph.lint()
    graph.recompile()
