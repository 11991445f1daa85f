"""Makes one stage of a pipeline a program that can be compiled: its forward, its backward and its update."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor
from torch.fx import GraphModule

from pilotage.capture.steps import UpdateStep
from pilotage.passes.stage_program import StageProgram
from pilotage.program.graphs.aliases import Memories
from pilotage.program.graphs.rewrites import results_of, returning
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.layout import Section
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec

Call = Callable[..., list[Tensor]]


@dataclass(frozen=True, slots=True)
class DividedGraph:
    """A graph in two parts: what is compiled, and views of arguments that it does not write to.

    Compiled code returns tensors of its own. It would copy a weight for each micro-batch whose backward reads the
    transposed weight.
    """

    computed: GraphModule
    views: Call | None = None
    """Makes the views from the same arguments; None if there are none."""

    places: tuple[int, ...] = ()
    """Which of the results are views."""

    def joined(self, code: Call) -> Call:
        """The whole graph, its first part by compiled code."""
        make_views, places = self.views, self.places
        if make_views is None:
            return code

        def run(*arguments: Tensor) -> list[Tensor]:
            results = code(*arguments)
            for place, view in zip(places, make_views(*arguments), strict=True):
                results.insert(place, view)
            return results

        return run


@dataclass(frozen=True, slots=True)
class CompilableStage:
    """One stage as a program, and how its compiled code is used."""

    program: Program
    graphs: Mapping[Action, DividedGraph]

    def calls(self, code: Mapping[Action, Call]) -> dict[Action, Call]:
        """The functions of the stage, by compiled code."""
        return {action: self.graphs[action].joined(call) for action, call in code.items()}


def compilable_stage(cut: StageProgram, sections: Sequence[Section]) -> CompilableStage:
    """The program of a stage."""
    forward, backward = cut.graphs.forward, cut.graphs.backward
    graphs = {Action.FORWARD: _divided(forward.graph)}
    inputs = (*cut.program.inputs, *forward.received)
    if backward is not None:
        graphs[Action.BACKWARD] = _divided(backward.graph)
        kept = results_of(forward.graph)[len(forward.sent) + len(forward.outputs) :]
        inputs = (*inputs, *(TensorSpec.of(node.meta["val"]) for node in kept), *backward.received)
    computations = {
        action: Computation(sections=tuple(sections), graph=each.computed)
        for action, each in graphs.items()
        if _computes(each.computed)
    }
    plan = cut.program.plan
    if backward is not None:
        update = cut.program.computations[Action.UPDATE]
        assert update.graph is not None
        assert isinstance(update.function, UpdateStep)
        if _computes(update.graph):
            computations[Action.UPDATE], graphs[Action.UPDATE] = update, DividedGraph(update.graph)
        # Without the parameters of other stages.
        plan = update.function.plan
    return CompilableStage(
        program=replace(cut.program, computations=computations, plan=plan, inputs=inputs, checks_loss=False),
        graphs=graphs,
    )


def _divided(graph: GraphModule) -> DividedGraph:
    results, memories = results_of(graph), Memories(graph.graph)
    last = len(graph.graph.nodes)
    places = tuple(
        place
        for place, node in enumerate(results)
        if memories.memory(node).op == "placeholder"
        # The views are made by other code, which must not write a second time.
        and not memories.written(node, 0, last)
        and _is_dense(TensorSpec.of(node.meta["val"]))
    )
    if not places:
        return DividedGraph(graph)
    others = [place for place in range(len(results)) if place not in places]
    return DividedGraph(returning(graph, others), straight_line(_only_views(graph, places)), places)


def _computes(graph: GraphModule) -> bool:
    """Whether a graph has anything to compile: a stage that trains nothing has no backward."""
    return any(node.op == "call_function" for node in graph.graph.nodes)


def _is_dense(specification: TensorSpec) -> bool:
    return specification.dense == specification


def _only_views(graph: GraphModule, places: Sequence[int]) -> GraphModule:
    """A copy of a graph that computes some of its results, which are views, and writes nothing."""
    copy = returning(graph, places)
    needed = set(results_of(copy))
    for node in reversed(copy.graph.nodes):
        if node in needed:
            needed.update(node.all_input_nodes)
        elif node.op != "placeholder" and node.op != "output":
            copy.graph.erase_node(node)
    copy.recompile()
    return copy
