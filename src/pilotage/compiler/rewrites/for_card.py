"""All rewrites for a card, one after the other."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from pilotage.compiler.rewrites.affine import gather_affine
from pilotage.compiler.rewrites.counting import count_together
from pilotage.compiler.rewrites.few_channels import fold_few_channels
from pilotage.compiler.rewrites.masks import mask_by_input
from pilotage.compiler.rewrites.pooling import spread_by_offsets
from pilotage.compiler.rewrites.separation import separate_large

KEPT_WHOLE = frozenset({torch.ops.aten.max_pool2d_with_indices_backward.default})
"""Operations that have to reach us whole."""


def rewrite_for_card(graph: GraphModule, device: torch.device) -> None:
    """Rewrite a graph that knows what its values look like, and whose only writes are copies at its end."""
    count_together(graph)
    fold_few_channels(graph, device)
    spread_by_offsets(graph)
    gather_affine(graph)
    mask_by_input(graph)
    separate_large(graph)
    graph.graph.lint()
    graph.recompile()
