"""Changed programs that are made from a captured one, without another run of forward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torch.fx import GraphModule, Node

from pilotage.capture.steps import UpdateStep
from pilotage.options.choices import Recomputation
from pilotage.passes.recomputation import recomputed
from pilotage.prediction.capturing.program import captured_update
from pilotage.program.graphs.forward_marks import is_forward, is_kept, keep
from pilotage.program.graphs.origins import module_of
from pilotage.program.graphs.rewrites import copy_graph
from pilotage.program.program import Action, Program

__all__ = ["with_recomputed_blocks", "with_single_updates", "with_slots_on_host"]


def with_recomputed_blocks(program: Program, blocks: Iterable[str]) -> Program | None:
    """The program that keeps the results of these modules for backward, which recomputes everything else.

    None if it recomputes already, or if it does not say which operations belong to the modules.
    """
    names, computations, found = tuple(blocks), dict(program.computations), False
    for action, computation in program.computations.items():
        if computation.graph is None:
            continue
        if any(map(is_kept, computation.graph.graph.nodes)):
            return None
        copy = copy_graph(computation.graph)
        found = _keep_results(copy, names) or found
        computations[action] = replace(computation, graph=copy)
    return recomputed(replace(program, computations=computations), Recomputation.MARKED) if found else None


def _keep_results(graph: GraphModule, blocks: tuple[str, ...]) -> bool:
    """Mark the values that each module returns, or passes to operations of forward outside of it."""
    found = False
    for node in graph.graph.nodes:
        block = _block_of(node, blocks)
        if block is not None and any(_leaves(user, block, blocks) for user in node.users):
            keep(node)
            found = True
    return found


def _leaves(user: Node, block: str, blocks: tuple[str, ...]) -> bool:
    return user.op == "output" or (is_forward(user) and _block_of(user, blocks) != block)


def _block_of(node: Node, blocks: tuple[str, ...]) -> str | None:
    """The module that an operation of forward is in."""
    if not is_forward(node):
        return None
    module = module_of(node)
    return next((each for each in blocks if module == each or module.startswith(f"{each}.")), None)


def with_single_updates(program: Program) -> Program:
    """A program that pools gradients, changed to update after each micro-batch: pools are not divided."""
    update = program.computations[Action.UPDATE]
    assert isinstance(update.function, UpdateStep)
    step = replace(update.function, divisors=dict.fromkeys(program.layout.trained, 1))
    changed = replace(update, function=step, graph=captured_update(step))
    return replace(program, computations={**program.computations, Action.UPDATE: changed})


def with_slots_on_host(program: Program) -> Program:
    """A program whose update is a separate step, with the optimizer's state outside of the device between updates."""
    return replace(program, layout=replace(program.layout, slots_on_host=1))
