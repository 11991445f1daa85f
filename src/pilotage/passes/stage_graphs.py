"""A step cut into the parts that the stages of a pipeline compute.

Values that a stage needs from an earlier one are handed on from neighbour to neighbour. What a stage's backward needs of its own
forward stays in the stage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch.fx import Graph, GraphModule, Node

from pilotage.errors import CaptureError
from pilotage.passes.stage_phases import Phases
from pilotage.program.specification import TensorSpec


@dataclass(frozen=True, slots=True)
class StageGraph:
    """The forward or the backward of one stage.

    The graph takes the stage's state, then what it gets (a micro-batch, or what forward has kept), then what it receives. It
    returns what it sends, then outputs, then what it leaves behind (what backward needs, or gradients).
    """

    graph: GraphModule
    received: tuple[TensorSpec, ...]
    sent: tuple[TensorSpec, ...]
    outputs: tuple[int, ...]
    """Which outputs of the whole step these are."""


@dataclass(frozen=True, slots=True)
class StageGraphs:
    """What one stage computes of every micro-batch."""

    forward: StageGraph
    backward: StageGraph | None
    """None in inference."""

    gradients: tuple[str, ...]
    """The parameters of this stage that backward has gradients of, in its order."""

    inputs: tuple[int, ...]
    """Inputs of a micro-batch that later stages than the first use."""

    owners: tuple[int, ...]
    """The stage that has each output of the whole step."""


@dataclass(frozen=True, kw_only=True)
class StepGraph:
    """A whole step, as it is to be cut."""

    graph: GraphModule
    state: Sequence[Node]
    """Arguments that this stage has, in the order of its own state."""

    inputs: Sequence[Node]
    outputs: Sequence[Node]
    gradients: Sequence[tuple[str, Node, Node]]
    """Parameters by name, each with its argument and its gradient."""

    everywhere: frozenset[Node]
    """Arguments that all stages have, inputs of a micro-batch among them."""


def cut(step: StepGraph, phases: Phases, stage: int) -> StageGraphs:
    """What one stage computes of a step."""
    routes = _Routes(phases, step)
    own = [(name, gradient) for name, weight, gradient in step.gradients if phases.of_node[weight] == stage]
    forward = _stage_graph(routes, step, stage, [*step.inputs], routes.kept(stage))
    backward = None
    if step.gradients:
        left = [gradient for _, gradient in own]
        backward = _stage_graph(routes, step, phases.backward(stage), routes.kept(stage), left)
    return StageGraphs(
        forward=forward,
        backward=backward,
        gradients=tuple(name for name, _ in own),
        inputs=tuple(number for number, node in enumerate(step.inputs) if routes.is_used_behind_the_first(node)),
        owners=tuple(phases.stage(routes.source(node)) for node in step.outputs),
    )


class _Routes:
    """How each value comes to the phases that need it; the same for all stages, so that neighbours agree."""

    def __init__(self, phases: Phases, step: StepGraph) -> None:
        self._phases = phases
        self._everywhere = step.everywhere
        self.crossing: dict[int, list[Node]] = defaultdict(list)
        """What each phase hands to the next one."""
        self._kept: dict[int, list[Node]] = defaultdict(list)
        """What each forward keeps for its own backward."""
        self._later: set[Node] = set()
        for node in step.graph.graph.nodes:
            if node.op == "call_function":
                for value in node.all_input_nodes:
                    self._need(value, phases.of_node[node])
        for _, weight, gradient in step.gradients:
            self._need(gradient, phases.backward(phases.of_node[weight]))

    def kept(self, stage: int) -> list[Node]:
        return self._kept[stage]

    def is_used_behind_the_first(self, node: Node) -> bool:
        return node in self._later

    def source(self, value: Node) -> int:
        """The phase that a value comes from; the first one for what all of them have."""
        return self._phases.of_node.get(value, 0)

    def is_at_hand(self, value: Node, phase: int) -> bool:
        """Whether a phase has a value among its own state, or computes it."""
        if value.op == "call_function":
            return self._phases.of_node[value] == phase
        if value.op == "get_attr" or value in self._everywhere:
            return True
        return self._phases.of_node[value] == self._phases.stage(phase)

    def changes(self, value: Node) -> bool:
        """Whether the next micro-batch will find another value."""
        return value in self._phases.written

    def _need(self, value: Node, phase: int) -> None:
        stage, stages = self._phases.stage(phase), self._phases.stages
        is_input = value.op == "placeholder" and value in self._everywhere
        if is_input and stage > 0:
            self._later.add(value)
        if phase >= stages and (is_input or value in self._phases.written):
            # Forward has it as backward needs it; by the time of backward it is another micro-batch's.
            _add(self._kept[stage], value)
            return
        if self.is_at_hand(value, phase):
            return
        source = self._phases.of_node[value]
        if source > phase:
            raise CaptureError(
                f"{value.name} is computed in stage {self._phases.stage(source)}, after stage {stage} needs it. Put the operations "
                "around it in blocks whose order is that of forward."
            )
        if phase >= stages and source <= stage:
            _add(self._kept[stage], value)
            self._need(value, stage)
            return
        if value not in self.crossing[phase - 1]:
            self.crossing[phase - 1].append(value)
            self._need(value, phase - 1)


def _stage_graph(routes: _Routes, step: StepGraph, phase: int, given: list[Node], left: list[Node]) -> StageGraph:
    """Write the graph of one phase."""
    received, sent = routes.crossing[phase - 1], routes.crossing[phase]
    outputs = [number for number, node in enumerate(step.outputs) if routes.source(node) == phase]
    writer = _Writer(routes, step, phase)
    for node in (*step.state, *given, *received):
        writer.take(node)
    writer.compute()
    results = [*sent, *(step.outputs[number] for number in outputs)]
    writer.finish([writer.made(node) for node in results], [writer.left(node) for node in left])
    return StageGraph(
        graph=GraphModule(step.graph, writer.graph),
        received=_specifications(received),
        sent=_specifications(sent),
        outputs=tuple(outputs),
    )


class _Writer:
    def __init__(self, routes: _Routes, step: StepGraph, phase: int) -> None:
        self.graph = Graph()
        self._routes = routes
        self._step = step
        self._phase = phase
        self._made: dict[Node, Node] = {}

    def take(self, node: Node) -> None:
        """One more argument; it stands for a value from now on, whatever did so before."""
        self._made[node] = self.graph.placeholder(f"argument_{len(self.graph.nodes)}")
        self._made[node].meta = dict(node.meta)

    def compute(self) -> None:
        for node in self._step.graph.graph.nodes:
            if node.op == "call_function" and self._routes.is_at_hand(node, self._phase):
                self._made[node] = self.graph.node_copy(node, self.made)

    def made(self, node: Node) -> Node:
        if node.op == "get_attr" and node not in self._made:
            self._made[node] = self.graph.node_copy(node)
        return self._made[node]

    def left(self, node: Node) -> Node:
        """What backward gets of a value: where it is state that changes, a copy."""
        made = self.made(node)
        return self.graph.call_function(torch.ops.aten.clone.default, (made,)) if self._routes.changes(node) else made

    def finish(self, results: list[Node], left: list[Node]) -> None:
        self.graph.output([*results, *left])


def _add(nodes: list[Node], node: Node) -> None:
    if node not in nodes:
        nodes.append(node)


def _specifications(nodes: Iterable[Node]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec.of(node.meta["val"]).dense for node in nodes)
