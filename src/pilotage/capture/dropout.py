"""Warns of dropout in inference because the module is still in training mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.fx import Node

from pilotage.program.program import Program
from pilotage.torch_private import SCHEMA, AnyDropout

_MASKS = frozenset({torch.ops.aten.bernoulli_.float, torch.ops.aten.native_dropout.default})
"""The operations that draw dropout masks."""


def active_dropout(module: nn.Module, modes: Mapping[nn.Module, bool], program: Program) -> str | None:
    """The warning for an inference program with active dropout, or None.

    A module in evaluation mode with only its dropout layers in training mode is deliberate (Monte Carlo dropout).
    """
    if program.trains or not modes.get(module, False):
        return None
    rates = {name or "the module": _rate(part) for name, part in module.named_modules() if modes.get(part)}
    layers = [name for name, rate in rates.items() if rate > 0]
    # A layer that forward does not use draws nothing; a layer with rate 1 need not draw.
    is_used = program.draws_random_numbers or any(rate >= 1 for rate in rates.values())
    if not (layers and is_used) and not _draws_masks(program):
        return None
    where = f"in {', '.join(layers[:3])}{' and others' if len(layers) > 3 else ''}" if layers else "in its forward"
    return (
        f"The module is in training mode, and inference drops values at random ({where}): results are not those of the "
        "trained model. Call .eval() on the module before wrapping it, or on the wrapped model. To keep dropout on "
        "purpose, put the module in evaluation mode and then only its dropout layers in training mode."
    )


def _rate(part: nn.Module) -> float:
    """The dropout rate of a layer."""
    if isinstance(part, AnyDropout):
        return part.p
    if isinstance(part, nn.RNNBase):
        return part.dropout if part.num_layers > 1 else 0.0
    return part.dropout if isinstance(part, nn.MultiheadAttention) else 0.0


def _draws_masks(program: Program) -> bool:
    graphs = [computation.graph for computation in program.computations.values() if computation.graph is not None]
    return any(_is_mask(node) for graph in graphs for node in graph.graph.nodes)


def _is_mask(node: Node) -> bool:
    if node.op != "call_function":
        return False
    return node.target in _MASKS or _attention_dropout(node) > 0


def _attention_dropout(node: Node) -> float:
    """The dropout rate of a fused attention kernel."""
    schema: Any = getattr(node.target, SCHEMA, None)
    if schema is None or "attention" not in schema.name:
        return 0.0
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | node.kwargs
    rate = given.get("dropout_p", 0.0)
    return rate if isinstance(rate, float) else 0.0
