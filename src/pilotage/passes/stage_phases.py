"""Which stage of a pipeline computes each value of a graph, and whether it does so in forward or in backward.

A micro-batch goes through the phases 0 to S - 1, the forwards of the S stages, and then through S to 2 S - 1, their backwards in
reverse order. An operation is in the phase that its stage says, or in a later one if what it needs is not there before.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from torch.fx import Graph, Node

from pilotage.errors import CaptureError
from pilotage.program.graphs.aliases import Memories, written_arguments
from pilotage.program.graphs.forward_marks import is_forward
from pilotage.program.graphs.origins import stage_of
from pilotage.program.graphs.source_lines import line_of


@dataclass(frozen=True, slots=True)
class Phases:
    """The phase of every value that a graph computes."""

    stages: int
    of_node: Mapping[Node, int]
    """Of operations, and of arguments that live in one stage."""

    written: frozenset[Node]
    """Arguments that the graph writes to, and values that lie in their memory."""

    def stage(self, phase: int) -> int:
        """The stage that a phase belongs to."""
        return stage_of_phase(phase, self.stages)

    def backward(self, stage: int) -> int:
        """The phase of a stage's backward."""
        return 2 * self.stages - 1 - stage


def stage_of_phase(phase: int, stages: int) -> int:
    """The stage that a phase belongs to."""
    return min(phase, 2 * stages - 1 - phase)


def stages_in(graph: Graph) -> int:
    """How many stages a graph speaks of, counted from 0 to the last."""
    return 1 + max((stage for node in graph.nodes if (stage := stage_of(node)) is not None), default=0)


def find_phases(graph: Graph, stages: int, *, homeless: frozenset[Node], trains: bool) -> Phases:
    """Find the phase of every operation, and of every argument but those that all stages have."""
    search = _Search(Memories(graph), stages, homeless, trains)
    for node in graph.nodes:
        if node.op == "call_function":
            search.place(node)
    for node in graph.nodes:
        if node.op == "placeholder" and node not in homeless:
            # An argument that nothing needs has to be somewhere, too.
            search.phases.setdefault(node, 0)
    return Phases(stages, search.phases, search.in_written_arguments(graph))


class _Search:
    def __init__(self, memories: Memories, stages: int, homeless: frozenset[Node], trains: bool) -> None:
        self.phases: dict[Node, int] = {}
        self._written: set[Node] = set()
        self._stages = stages
        self._homeless = homeless
        self._trains = trains
        self._memories = memories
        self._last_write: dict[Node, int] = {}
        """The phase in which each memory was last written to."""

    def place(self, node: Node) -> None:
        phase = self._phase(node)
        self.phases[node] = phase
        for value in node.all_input_nodes:
            if value.op == "placeholder" and value not in self._homeless:
                # Weights live where they are first used.
                self.phases.setdefault(value, stage_of_phase(phase, self._stages))
            self._refuse_stale_reading(node, value, phase)
        for value in written_arguments(node):
            self._note_write(node, value, phase)

    def in_written_arguments(self, graph: Graph) -> frozenset[Node]:
        return frozenset(node for node in graph.nodes if self._memories.memory(node) in self._written)

    def _phase(self, node: Node) -> int:
        given = [self.phases[value] for value in node.all_input_nodes if value.op == "call_function"]
        earliest = max(given, default=0)
        if node.target is operator.getitem:
            return earliest
        stage = stage_of(node)
        if stage is None:
            return earliest
        is_backward = self._trains and not is_forward(node)
        wanted = 2 * self._stages - 1 - stage if is_backward else stage
        if earliest > wanted and not is_backward:
            raise CaptureError(
                f"forward goes back to stage {stage} after it has been in stage {stage_of_phase(earliest, self._stages)}, and "
                "the stages of a pipeline in processes of their own follow each other. Give each stage an IPU of its own, in "
                f"ascending order.{_at(node)}"
            )
        return max(wanted, earliest)

    def _note_write(self, node: Node, value: Node, phase: int) -> None:
        memory = self._memories.memory(value)
        if memory.op == "placeholder":
            self._written.add(memory)
            home = self.phases.get(memory)
            if memory in self._homeless or home != stage_of_phase(phase, self._stages):
                raise CaptureError(
                    f"forward writes to {memory.name} in stage {stage_of_phase(phase, self._stages)}, though it belongs to another "
                    f"one, or to all. State that changes can be used in one stage of a pipeline alone.{_at(node)}"
                )
        self._last_write[memory] = phase

    def _refuse_stale_reading(self, node: Node, value: Node, phase: int) -> None:
        """What a later stage has written to is never sent back to the one that made it."""
        written = self._last_write.get(self._memories.memory(value))
        if value.op != "call_function" or written is None or written <= self.phases[value] or phase == written:
            return
        if phase < written or phase >= self._stages:
            raise CaptureError(
                f"A value of stage {stage_of_phase(self.phases[value], self._stages)} is changed in place in stage "
                f"{stage_of_phase(written, self._stages)}, and its old memory is read afterwards. Use an operation that returns "
                f"a new tensor.{_at(node)}"
            )


def _at(node: Node) -> str:
    line = line_of(node)
    return f"\n  at {line}" if line else ""
