"""Runs a program's graphs as usual, with a clock around each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.execution.walk import StepFailure, WalkedExecutable
from pilotage.passes.direct_gradients import with_direct_gradients
from pilotage.profiling.clocks import clock_for
from pilotage.profiling.costs import bytes_of, described, flops_of, is_free, operation_name, tensors_in
from pilotage.profiling.device_memory import LiveTensors, allocated_bytes
from pilotage.profiling.observation import Observed, PeakSeen, Sighting, Table
from pilotage.program.graphs.forward_marks import is_forward
from pilotage.program.graphs.labels import gradient_of, labels_of
from pilotage.program.graphs.origins import module_of, stage_of
from pilotage.program.graphs.source_lines import line_of
from pilotage.program.program import Action, Program
from pilotage.program.schedule import Schedule
from pilotage.torch_private import OpOverload, kernel_of

__all__ = ["ProgramLook"]


class ProgramLook:
    """Runs whole calls of a program on its real state, and fills the table of its operations."""

    def __init__(
        self, program: Program, schedule: Schedule, state: DeviceState, streams: RandomStreams, prefix: str = ""
    ) -> None:
        """``prefix`` is what the names of weights begin with before the path of their module."""
        # The form of the program that this kind of device really runs.
        runs_directly = state.device.type == "cpu" and all(each.graph for each in program.computations.values())
        self.program = with_direct_gradients(program, schedule) if runs_directly else program
        self.schedule = schedule
        self.table = Table()
        self.live = LiveTensors()
        self.clock = clock_for(state.device)
        self._state = state
        self._streams = streams
        self._prefix = prefix
        calls = {action: self._observed(action) for action in _in_order(schedule)}
        self._walked = WalkedExecutable(self.program, schedule, _stop, calls)

    def _observed(self, action: Action) -> Callable[..., list[Tensor]]:
        graph = self.program.computations[action].graph
        assert graph is not None
        runs = sum(step.action is action for step in self.schedule.steps) // max(1, self.schedule.updates)
        return _ObservedGraph(graph, action, self, max(1, runs))

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run one call; as the strategy of a session does."""
        self._follow_state()
        return self._walked.run(self._state, self._streams, inputs)

    def _follow_state(self) -> None:
        state, here = self._state, self._state.device
        named: list[tuple[str, str, Tensor]] = [(name, "weights", each) for name, each in state.parameters.items()]
        for replica in state.replicas:
            named += [(name, "weights", each) for name, each in state.buffers(replica).items()]
        named += [(f"{slot.name} of {slot.parameter}", "optimizer", each) for slot, each in state.slots.items()]
        named.append(("pooled gradients", "gradients", state.flat_gradients))
        for name, category, tensor in named:
            if tensor.device == here:
                path = name.removeprefix(self._prefix)
                self.live.add(tensor, path, category, path.rpartition(".")[0] if category == "weights" else "")

    def note_memory(self, place: int) -> None:
        """Record the memory in use after an operation."""
        total = allocated_bytes(self._state.device) or self.live.total
        self.table.note_memory(place, total, dict(self.live.sums))
        highest = self.table.peak
        if highest is None or self.live.total > highest.bytes:
            self.table.peak = PeakSeen(place, self.live.total, dict(self.live.sums), self.live.holdings())


class _ObservedGraph:
    """The function of one graph."""

    def __init__(self, graph: GraphModule, action: Action, look: ProgramLook, runs: int) -> None:
        self._graph = graph
        self._look = look
        self._inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._dropped = _last_uses(graph)
        self._places: dict[Node, int] = {}
        self._origins: dict[Node, tuple[str, str, str | None]] = {}
        """What the memory of a result is for, its module and its line."""
        self._is_described = False
        self._phases = _Phases(graph, action, look.program)
        for node in graph.graph.nodes:
            if node.op == "call_function" and not is_free(node.target):
                self._places[node] = len(look.table.sightings)
                self._origins[node] = (self._phases.category(node), module_of(node), line_of(node))
                named = Observed(name=operation_name(node.target), phase=self._phases.of(node))
                look.table.sightings.append(Sighting(named, runs=runs))

    def __call__(self, *arguments: Tensor) -> list[Tensor]:
        look, timed = self._look, list[int]()
        for number, tensor in enumerate(arguments):
            if tensor.device == look._state.device:
                look.live.add(tensor, f"input {number}", "inputs")
        values: dict[Node, Any] = dict(zip(self._inputs, arguments, strict=True))
        outputs: list[Tensor] = []
        for node in self._graph.graph.nodes:
            if node.op == "get_attr":
                values[node] = getattr(self._graph, str(node.target))
            elif node.op == "output":
                outputs = list(map_arg(node.args[0], values.__getitem__))
            elif node.op == "call_function":
                values[node] = self._run(node, values, timed)
            for each in self._dropped[node]:
                del values[each]
        for place, seconds in zip(timed, look.clock.seconds(), strict=True):
            look.table.sightings[place].seconds.append(seconds)
        self._is_described = True
        return outputs

    def _run(self, node: Node, values: Mapping[Node, Any], timed: list[int]) -> Any:
        args = map_arg(node.args, values.__getitem__)
        kwargs = map_arg(node.kwargs, values.__getitem__)
        call: Any = kernel_of(node.target) if isinstance(node.target, OpOverload) else node.target
        place = self._places.get(node)
        if place is None:
            return call(*args, **kwargs)
        clock = self._look.clock
        clock.start()
        result = call(*args, **kwargs)
        clock.stop()
        timed.append(place)
        if not self._is_described:
            self._describe(node, place, args, kwargs, result)
        for tensor in tensors_in(result):
            self._look.live.add(tensor, node.name, *self._origins[node])
        self._look.note_memory(place)
        return result

    def _describe(self, node: Node, place: int, args: Any, kwargs: Any, result: Any) -> None:
        sighting = self._look.table.sightings[place]
        sighting.what = Observed(
            name=sighting.what.name,
            phase=sighting.what.phase,
            module=module_of(node),
            line=line_of(node),
            output=described(result),
            flops=flops_of(node.target, args, kwargs, result),
            bytes=bytes_of(args, kwargs, result),
            stage=stage_of(node),
        )


class _Phases:
    """Which phase of an update the operations of a graph belong to, and what their results are for."""

    def __init__(self, graph: GraphModule, action: Action, program: Program) -> None:
        labels = {gradient_of(name) for name in program.layout.trained}
        nodes = list(graph.graph.nodes)
        self._action = action
        self._position = {node: number for number, node in enumerate(nodes)}
        self._gradients = {node for node in nodes if labels.intersection(labels_of(node))}
        self._end_of_backward = max((self._position[node] for node in self._gradients), default=-1)

    def of(self, node: Node) -> str:
        """The phase of an operation."""
        if self._action is Action.UPDATE:
            return "update"
        if self._action is Action.INFER or is_forward(node):
            return "forward"
        is_late = self._action is Action.TRAIN and self._position[node] > self._end_of_backward
        return "update" if is_late else "backward"

    def category(self, node: Node) -> str:
        """What the memory of a result is for."""
        if self._is_gradient(node):
            return "gradients"
        return "activations" if self.of(node) == "forward" and self._is_kept(node) else "temporaries"

    def _is_gradient(self, node: Node) -> bool:
        """Whether a value, or a view of it, is the gradient of a parameter."""
        return node in self._gradients or any(is_free(user.target) and self._is_gradient(user) for user in node.users)

    def _is_kept(self, node: Node) -> bool:
        """Whether a value of forward, or a view of it, is used later than in forward."""
        return any(
            self.of(user) != "forward" or (is_free(user.target) and self._is_kept(user))
            for user in node.users
            if user.op == "call_function"
        )


def _last_uses(graph: GraphModule) -> dict[Node, list[Node]]:
    """For each node, the values that are not needed after it."""
    dropped: dict[Node, list[Node]] = {node: [] for node in graph.graph.nodes}
    seen: set[Node] = set()
    for node in reversed(graph.graph.nodes):
        if node.op == "call_function" and not node.users:
            dropped[node].append(node)
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                # The results themselves go to the caller.
                if node.op != "output":
                    dropped[node].append(used)
    return dropped


def _in_order(schedule: Schedule) -> list[Action]:
    return list(dict.fromkeys(step.action for step in schedule.steps))


def _stop(failure: StepFailure, error: Exception) -> bool:
    return False
