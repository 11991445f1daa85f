"""Which stage of a pipeline computes each value of a graph, and whether in forward or backward.

A micro-batch goes through phases 0 to S - 1, the forwards of the S stages, and then through S to 2 S - 1, their
backwards in reverse order. An operation is in the phase of its stage, or in a later one if its arguments are not ready
before.
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
    """The phase of each operation, and of each argument that belongs to one stage."""

    written: frozenset[Node]
    """Arguments that the graph writes to, and values that share their memory."""

    def stage(self, phase: int) -> int:
        """The stage of a phase."""
        return stage_of_phase(phase, self.stages)

    def backward(self, stage: int) -> int:
        """The phase of a stage's backward."""
        return 2 * self.stages - 1 - stage


def stage_of_phase(phase: int, stages: int) -> int:
    """The stage of a phase."""
    return min(phase, 2 * stages - 1 - phase)


def stages_in(graph: Graph) -> int:
    """The number of stages in a graph, from 0 to the last one."""
    return 1 + max((stage for node in graph.nodes if (stage := stage_of(node)) is not None), default=0)


def find_phases(graph: Graph, stages: int, *, everywhere: frozenset[Node], trains: bool) -> Phases:
    """Find the phase of every operation, and of every argument that not all stages have."""
    search = _Search(Memories(graph), stages, everywhere, trains)
    for node in graph.nodes:
        if node.op == "call_function":
            search.place(node)
    for node in graph.nodes:
        if node.op == "placeholder" and node not in everywhere:
            # Unused arguments also need a stage.
            search.phases.setdefault(node, 0)
    return Phases(stages, search.phases, search.in_written_arguments(graph))


class _Search:
    def __init__(self, memories: Memories, stages: int, everywhere: frozenset[Node], trains: bool) -> None:
        self.phases: dict[Node, int] = {}
        self._written: set[Node] = set()
        self._stages = stages
        self._everywhere = everywhere
        self._trains = trains
        self._memories = memories
        self._last_write: dict[Node, int] = {}
        """The phase of the last write to each memory."""

    def place(self, node: Node) -> None:
        phase = self._phase(node)
        self.phases[node] = phase
        for value in node.all_input_nodes:
            if value.op == "placeholder" and value not in self._everywhere:
                # Weights belong to the stage of their first use.
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
                f"forward returns to stage {stage} after stage {stage_of_phase(earliest, self._stages)}, but the "
                "stages of a pipeline in separate processes must follow each other. Give each stage its own IPU, in "
                f"ascending order.{_at(node)}"
            )
        return max(wanted, earliest)

    def _note_write(self, node: Node, value: Node, phase: int) -> None:
        memory = self._memories.memory(value)
        if memory.op == "placeholder":
            self._written.add(memory)
            assigned = self.phases.get(memory)
            if memory in self._everywhere or assigned != stage_of_phase(phase, self._stages):
                raise CaptureError(
                    f"forward writes to {memory.name} in stage {stage_of_phase(phase, self._stages)}, but it belongs "
                    "to another stage, or to all. State that changes can be used in only one stage of a pipeline."
                    f"{_at(node)}"
                )
        self._last_write[memory] = phase

    def _refuse_stale_reading(self, node: Node, value: Node, phase: int) -> None:
        """Raise for a read of a value after a later stage wrote to it: the write is never sent back."""
        written = self._last_write.get(self._memories.memory(value))
        if value.op != "call_function" or written is None or written <= self.phases[value] or phase == written:
            return
        if phase < written or phase >= self._stages:
            raise CaptureError(
                f"A value of stage {stage_of_phase(self.phases[value], self._stages)} is changed in place in stage "
                f"{stage_of_phase(written, self._stages)}, and its old memory is read afterwards. Use an operation "
                f"that returns a new tensor.{_at(node)}"
            )


def _at(node: Node) -> str:
    line = line_of(node)
    return f"\n  at {line}" if line else ""
