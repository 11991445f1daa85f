"""Cuts a step into the graphs that the stages of a pipeline run.

Values that a stage needs from an earlier one are sent from neighbour to neighbour. What a stage's backward needs from
its own forward stays in the stage.
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

    The graph takes the stage's state, then a micro-batch or the values kept by forward, then what it receives. It
    returns what it sends, then outputs, then the values that backward needs, or gradients.
    """

    graph: GraphModule
    received: tuple[TensorSpec, ...]
    sent: tuple[TensorSpec, ...]
    outputs: tuple[int, ...]
    """The positions of its outputs among those of the whole step."""


@dataclass(frozen=True, slots=True)
class StageGraphs:
    """The graphs that one stage runs for every micro-batch."""

    forward: StageGraph
    backward: StageGraph | None
    """None in inference."""

    gradients: tuple[str, ...]
    """The parameters of this stage with a gradient, in the order of backward."""

    inputs: tuple[int, ...]
    """Inputs of a micro-batch that stages after the first use."""

    owners: tuple[int, ...]
    """The stage of each output of the whole step."""


@dataclass(frozen=True, kw_only=True)
class StepGraph:
    """The graph of a whole step, to be cut."""

    graph: GraphModule
    state: Sequence[Node]
    """The arguments of this stage, in the order of its own state."""

    inputs: Sequence[Node]
    outputs: Sequence[Node]
    gradients: Sequence[tuple[str, Node, Node]]
    """The name, argument and gradient of each parameter."""

    everywhere: frozenset[Node]
    """Arguments that all stages have, including inputs of a micro-batch."""


def cut(step: StepGraph, phases: Phases, stage: int) -> StageGraphs:
    """Cut the graphs of one stage out of a step."""
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
        inputs=tuple(number for number, node in enumerate(step.inputs) if routes.is_used_after_the_first_stage(node)),
        owners=tuple(phases.stage(routes.source(node)) for node in step.outputs),
    )


class _Routes:
    """How each value gets to the phases that need it; the same in all stages, so that neighbours agree."""

    def __init__(self, phases: Phases, step: StepGraph) -> None:
        self._phases = phases
        self._everywhere = step.everywhere
        self.crossing: dict[int, list[Node]] = defaultdict(list)
        """The values that each phase sends to the next one."""
        self._kept: dict[int, list[Node]] = defaultdict(list)
        """The values that each forward keeps for its own backward."""
        self._later: set[Node] = set()
        for node in step.graph.graph.nodes:
            if node.op == "call_function":
                for value in node.all_input_nodes:
                    self._need(value, phases.of_node[node])
        for _, weight, gradient in step.gradients:
            self._need(gradient, phases.backward(phases.of_node[weight]))

    def kept(self, stage: int) -> list[Node]:
        return self._kept[stage]

    def is_used_after_the_first_stage(self, node: Node) -> bool:
        return node in self._later

    def source(self, value: Node) -> int:
        """The phase that computes a value; the first one for values that all stages have."""
        return self._phases.of_node.get(value, 0)

    def is_local(self, value: Node, phase: int) -> bool:
        """Whether a phase computes a value or has it in its state."""
        if value.op == "call_function":
            return self._phases.of_node[value] == phase
        if value.op == "get_attr" or value in self._everywhere:
            return True
        return self._phases.of_node[value] == self._phases.stage(phase)

    def changes(self, value: Node) -> bool:
        """Whether the value changes before the next micro-batch."""
        return value in self._phases.written

    def _need(self, value: Node, phase: int) -> None:
        stage, stages = self._phases.stage(phase), self._phases.stages
        is_input = value.op == "placeholder" and value in self._everywhere
        if is_input and stage > 0:
            self._later.add(value)
        if phase >= stages and (is_input or value in self._phases.written):
            # Backward needs the value of its own micro-batch, so forward keeps it.
            _add(self._kept[stage], value)
            return
        if self.is_local(value, phase):
            return
        source = self._phases.of_node[value]
        if source > phase:
            raise CaptureError(
                f"{value.name} is computed in stage {self._phases.stage(source)}, after stage {stage} needs it. Order "
                "the blocks around it in the order in which forward runs them."
            )
        if phase >= stages and source <= stage:
            _add(self._kept[stage], value)
            self._need(value, stage)
            return
        if value not in self.crossing[phase - 1]:
            self.crossing[phase - 1].append(value)
            self._need(value, phase - 1)


def _stage_graph(routes: _Routes, step: StepGraph, phase: int, given: list[Node], left: list[Node]) -> StageGraph:
    """Build the graph of one phase."""
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
        """Add an argument, which represents a value from now on."""
        self._made[node] = self.graph.placeholder(f"argument_{len(self.graph.nodes)}")
        self._made[node].meta = dict(node.meta)

    def compute(self) -> None:
        for node in self._step.graph.graph.nodes:
            if node.op == "call_function" and self._routes.is_local(node, self._phase):
                self._made[node] = self.graph.node_copy(node, self.made)

    def made(self, node: Node) -> Node:
        if node.op == "get_attr" and node not in self._made:
            self._made[node] = self.graph.node_copy(node)
        return self._made[node]

    def left(self, node: Node) -> Node:
        """A value to keep for backward: a copy if it is state that changes."""
        made = self.made(node)
        if not self._routes.changes(node):
            return made
        copy = self.graph.call_function(torch.ops.aten.clone.default, (made,))
        copy.meta = {"val": node.meta["val"]}
        return copy

    def finish(self, results: list[Node], left: list[Node]) -> None:
        self.graph.output([*results, *left])


def _add(nodes: list[Node], node: Node) -> None:
    if node not in nodes:
        nodes.append(node)


def _specifications(nodes: Iterable[Node]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec.of(node.meta["val"]).dense for node in nodes)
