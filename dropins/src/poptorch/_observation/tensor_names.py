"""The tensors of a program under PopTorch's names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from torch.fx import Node

from pilotage.engine import OptimizerPlan, Program, labels, scoped_name, tensor_names
from poptorch.optim.value_names import to_ipu_param

__all__ = ["intermediate_representation", "label_of", "names_in"]

GRADIENT = "Gradient___"
UPDATED = "UpdatedVar___"
FINAL_LOSS_SCALE = "finalLossScale"


def label_of(long_name: str) -> str:
    """The engine's label of a tensor."""
    if long_name.startswith(GRADIENT):
        return labels.gradient_of(long_name.removeprefix(GRADIENT))
    if long_name.startswith(UPDATED):
        return labels.updated(long_name.removeprefix(UPDATED))
    if long_name == FINAL_LOSS_SCALE:
        return labels.LOSS_SCALE
    if long_name == "input":
        return labels.input_number(0)
    if long_name.startswith("input/"):
        return f"{labels.input_number(0)[:-1]}{long_name.removeprefix('input/')}"
    return long_name


def names_in(program: Program, plan: OptimizerPlan | None) -> list[str]:
    """Every name in a program: weights, inputs, loss, gradients, updates, optimizer values, operations."""
    known = _known_labels(program)
    names = [known.get(label, label) for label in tensor_names(program)]
    # With pooled gradients the update is a separate program, whose results are read after the call.
    updates = [UPDATED + name for name in program.layout.trained if UPDATED + name not in names]
    return [*names, *updates, *(() if plan is None else to_ipu_param(plan))]


def _known_labels(program: Program) -> Mapping[str, str]:
    inputs = {
        labels.input_number(place): f"input/{place}" if place else "input" for place in range(len(program.inputs))
    }
    trained = program.layout.trained
    return {
        **inputs,
        labels.LOSS: labels.LOSS,
        labels.LOSS_SCALE: FINAL_LOSS_SCALE,
        **{labels.gradient_of(name): GRADIENT + name for name in trained},
        **{labels.updated(name): UPDATED + name for name in trained},
    }


def intermediate_representation(program: Program) -> str:
    """The operations of a program as JSON, with their inputs and outputs."""
    graphs = [computation.graph for computation in program.computations.values() if computation.graph is not None]
    operations = [_operation(node) for graph in graphs for node in graph.graph.nodes if node.op == "call_function"]
    return json.dumps({"maingraph": operations})


def _operation(node: Node) -> dict[str, Any]:
    return {
        "name": scoped_name(node),
        "type": str(node.target),
        "inputs": [{"name": scoped_name(value)} for value in node.all_input_nodes],
        "outputs": [{"name": scoped_name(node)}],
    }
