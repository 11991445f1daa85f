"""A program with random weights, to check and time ways of running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from pilotage.compiler.job import CompileJob
from pilotage.execution.cuda_graph import can_be_recorded
from pilotage.execution.state import DeviceState
from pilotage.program.graphs.aliases import Memories
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action, Computation, Program
from pilotage.program.specification import TensorSpec

Calls = Mapping[Action, Callable[..., list[Tensor]]]


class Trial:
    """A program with random weights, run like one host call."""

    def __init__(self, job: CompileJob, program: Program, calls: Calls | None = None) -> None:
        self.program = program
        self._job = job
        self._calls = calls or {action: _straight(part) for action, part in program.computations.items()}
        pools = Action.UPDATE in program.computations
        self.state = DeviceState(program.layout, program.plan, job.device, 1, pools)
        self._inputs = {action: [tensor.to(job.device) for tensor in given] for action, given in job.inputs.items()}
        self._overwritten: dict[Action, frozenset[int]] = {
            action: _overwritten_inputs(program.computations[action], len(given))
            for action, given in self._inputs.items()
            if action in (Action.FORWARD, Action.BACKWARD) and action in program.computations
        }
        """The inputs that a stage writes to, such as messages of other stages; each run gets copies of its own."""
        generator = torch.Generator().manual_seed(0)
        weights = {name: _made_up(spec, generator) for name, spec in job.program.layout.parameters.items()}
        self.state.load_weights(weights, job.buffers)
        if Action.BACKWARD in program.computations:
            # What pools the gradients of a stage is not a part of its program.
            self.state.flat_gradients.copy_(torch.randn(self.state.flat_gradients.shape, generator=generator))

    @property
    def can_be_recorded(self) -> bool:
        """Whether it can be recorded as a CUDA graph."""
        return all(can_be_recorded(part, self._job.device) for part in self.program.computations.values())

    def fresh_copy(self) -> Trial:
        """A new trial with the initial state."""
        return Trial(self._job, self.program, self._calls)

    def arguments(self, action: Action) -> list[Tensor]:
        """The arguments of an action."""
        computation = self.program.computations[action]
        state = self.state.arguments(computation.sections, 0, whole=computation.whole)
        overwritten = self._overwritten.get(action, frozenset())
        inputs = self._inputs.get(action, [])
        return [*state, *(each.clone() if number in overwritten else each for number, each in enumerate(inputs))]

    def run(self) -> list[Tensor]:
        """Run every action as often as one device iteration of a host call does."""
        return [
            result for action, count in self._job.runs.items() for _ in range(count) for result in self.results(action)
        ]

    def results(self, action: Action) -> list[Tensor]:
        """Run an action once; its outputs."""
        return self._calls[action](*self.arguments(action))

    def state_tensors(self) -> list[Tensor]:
        """The current state."""
        return [
            *self.state.parameters.values(),
            *self.state.buffers().values(),
            *self.state.slots.values(),
            self.state.flat_gradients,
        ]

    def names(self, count: int) -> list[str]:
        """The names of ``count`` results: first the outputs of a run, then the state."""
        state = [
            *self.state.parameters,
            *(f"buffer {name}" for name in self.state.buffers()),
            *(f"{slot.name} of {slot.parameter}" for slot in self.state.slots),
            "pooled gradients",
        ]
        return [*(f"output {number}" for number in range(count - len(state))), *state]


def _straight(computation: Computation) -> Callable[..., list[Tensor]]:
    assert computation.graph is not None
    return straight_line(computation.graph)


def _overwritten_inputs(computation: Computation, inputs: int) -> frozenset[int]:
    """Which of the last arguments of a computation it writes to."""
    assert computation.graph is not None
    graph = computation.graph.graph
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    memories, last = Memories(graph), len(graph.nodes)
    own = placeholders[len(placeholders) - inputs :]
    return frozenset(number for number, node in enumerate(own) if memories.written(node, 0, last))


def _made_up(specification: TensorSpec, generator: torch.Generator) -> Tensor:
    """Random weights of a sensible size, independent of the memory layout."""
    tensor = torch.zeros(specification.shape, dtype=specification.dtype)
    if not tensor.is_floating_point():
        return tensor
    tensor.normal_(generator=generator)
    if tensor.dim() < 2:
        # Scales and shifts are about one: mixed signs would make a deep network chaotic.
        return tensor.mul_(0.1).add_(1)
    return tensor.mul_(max(1, tensor.numel() // max(1, tensor.shape[0])) ** -0.5)
