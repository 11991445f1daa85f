"""Programs and results that cannot be compared with eager PyTorch."""

from __future__ import annotations

from torch.fx import Node

from pilotage.program.program import Program
from pilotage.strategies.stages.strategy import Pipeline
from pilotage.strategies.strategy import Strategy
from pilotage.torch_private import OpOverload, schema_of

_QUIET = frozenset({"aten", "prims", "pilotage", "inductor", "poptorch::print_tensor"})
"""Namespaces and operators that do nothing outside of the program, or are silent in a comparison."""


def obstacle(program: Program, strategy: Strategy) -> str:
    """Why a program cannot be compared; empty if it can."""
    if program.layout.replica_groups:
        return "groups of replicas have their own weights"
    if program.draws_random_numbers and isinstance(strategy, Pipeline):
        return "the stages of a pipeline draw random numbers in another order than eager PyTorch"
    for computation in program.computations.values():
        graph = computation.graph
        for node in () if graph is None else graph.graph.nodes:
            if _acts_outside(node):
                return f"the program calls {_operator(node)} on the host, which would happen twice"
    return ""


def left_out(program: Program) -> list[str]:
    """The parts of a result that cannot be compared, in words."""
    if program.plan is not None and program.plan.stochastic_rounding:
        return ["updated weights (rounded at random)"]
    return []


def _acts_outside(node: Node) -> bool:
    if node.op != "call_function" or not node.is_impure():
        return False
    name = _operator(node)
    return name not in _QUIET and name.partition("::")[0] not in _QUIET


def _operator(node: Node) -> str:
    return str(schema_of(node.target).name) if isinstance(node.target, OpOverload) else str(node.target)
