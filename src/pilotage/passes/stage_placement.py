"""Places the stages of a program on several devices: every operation runs on the device of its stage.

Arguments on other devices are copied. Weights stay on the device of their first use, and are updated there.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from pilotage.errors import CaptureError
from pilotage.program.graphs.aliases import aliased_arguments, items, written_arguments
from pilotage.program.graphs.origins import stage_of
from pilotage.program.graphs.rewrites import hidden_writes
from pilotage.program.layout import Section
from pilotage.program.program import Computation, Program
from pilotage.torch_private import TO_COPY

Devices = Sequence[torch.device]


@dataclass(frozen=True, slots=True)
class PlacedProgram:
    """A program with a device for each operation, and the devices of its state."""

    program: Program
    state_devices: Mapping[str, torch.device]
    """The devices of parameters and buffers; everything else is on the first device."""


def place(program: Program, devices: Devices) -> PlacedProgram:
    """Place stage s of a program on device s modulo the number of devices."""
    forward = next(iter(program.computations.values()))
    if len(devices) < 2 or forward.graph is None or not _spans(forward.graph, devices):
        return PlacedProgram(program, {})
    state_devices = {
        name: device
        for name, device in zip(_names(program, forward), _first_uses(forward.graph, devices), strict=False)
        if name is not None
    }
    computations = {
        action: replace(computation, graph=_placed(program, computation, devices, state_devices))
        for action, computation in program.computations.items()
    }
    return PlacedProgram(replace(program, computations=computations), state_devices)


def _spans(graph: GraphModule, devices: Devices) -> bool:
    """Whether the stages of a graph are on several devices."""
    stages = {stage_of(node) for node in graph.graph.nodes} - {None}
    return len({stage % len(devices) for stage in stages if stage is not None} | {0}) > 1


def _placed(
    program: Program, computation: Computation, devices: Devices, state_devices: Mapping[str, torch.device]
) -> GraphModule | None:
    if computation.graph is None:
        return None
    names = _names(program, computation)
    inputs = sum(node.op == "placeholder" for node in computation.graph.graph.nodes)
    places = [state_devices.get(name or "", devices[0]) for name in names] + [devices[0]] * (inputs - len(names))
    return placed_graph(computation.graph, devices, places)


def _names(program: Program, computation: Computation) -> list[str | None]:
    """The parameter or buffer whose device each state tensor follows: a slot follows its parameter."""
    names: list[str | None] = []
    for section in computation.sections:
        match section:
            case Section.PARAMETERS | Section.SLOTS:
                names += program.layout.owners(section)
            case Section.BUFFERS:
                names += program.layout.buffers
            case _:
                names += [None] * len(program.layout.section(section))
    return names


def _first_uses(graph: GraphModule, devices: Devices) -> Iterable[torch.device]:
    """The device of the first stage that uses each argument of a graph."""
    order = {node: number for number, node in enumerate(graph.graph.nodes)}
    for argument in graph.graph.nodes:
        if argument.op != "placeholder":
            return
        stages = [stage_of(user) for user in sorted(argument.users, key=order.__getitem__)]
        stage = next((stage for stage in stages if stage is not None), 0)
        yield devices[stage % len(devices)]


def placed_graph(graph: GraphModule, devices: Devices, places: Devices) -> GraphModule:
    """The same graph with each operation on the device of its stage, and its arguments on ``places``."""
    placer = _Placer(devices)
    arguments = iter(places)
    for node in graph.graph.nodes:
        match node.op:
            case "placeholder":
                placer.keep(node, next(arguments))
            case "get_attr":
                placer.keep(node, devices[0])
            case "output":
                placer.finish(node)
            case _:
                placer.call(node)
    return GraphModule(graph, placer.graph)


class _Placer:
    """Copies a graph node by node, and tracks the device of every value."""

    def __init__(self, devices: Devices) -> None:
        self.graph = Graph()
        self._devices = devices
        self._made: dict[Node, Node] = {}
        self._where: dict[Node, torch.device] = {}
        self._memory: dict[Node, Node] = {}
        """The node that allocated the memory of a value."""
        self._copies: dict[tuple[Node, torch.device], Node] = {}
        self._parts: dict[Node, list[tuple[Node, int]]] = {}
        """Where to find each item of a list that was computed on several devices."""

    def keep(self, node: Node, device: torch.device) -> None:
        """Copy an argument or constant."""
        self._note(node, self.graph.node_copy(node), device)

    def finish(self, node: Node) -> None:
        """Copy the output node."""
        self.graph.node_copy(node, self._made.__getitem__)

    def call(self, node: Node) -> None:
        """Copy an operation."""
        if node.target is operator.getitem:
            self._take_item(node)
        elif str(node.target).startswith("aten._foreach_") and len(self._by_device(node.args[0])) > 1:
            self._call_in_parts(node)
        else:
            self._call_at(node, self._device_for(node))

    def _call_at(self, node: Node, device: torch.device) -> None:
        bound = set(self._bound_to_device(node))
        there = {n: self._made[n] if n in bound else self._at(self._made[n], device) for n in node.all_input_nodes}
        made = self.graph.node_copy(node, there.__getitem__)
        asked = node.kwargs.get("device")
        if asked == self._devices[0]:
            made.kwargs = {**made.kwargs, "device": device}
        elif isinstance(asked, torch.device):
            device = asked
        self._note(node, made, device, memory_of=next(iter(self._aliased(node)), None))
        self._forget_copies(written_arguments(node))

    def _call_in_parts(self, node: Node) -> None:
        """Run an operation on lists once for each device, with the items on it."""
        size = len(items(node.args[0]))
        parts: list[tuple[Node, int]] = [(node, 0)] * size
        for device, positions in self._by_device(node.args[0]).items():

            def chosen(value: Any, positions: list[int] = positions, device: torch.device = device) -> Any:
                if isinstance(value, (list, tuple)) and len(value) == size:
                    value = [value[position] for position in positions]
                return map_arg(value, lambda n: self._at(self._made[n], device))

            kwargs = {key: chosen(value) for key, value in node.kwargs.items()}
            made = self.graph.create_node("call_function", node.target, tuple(map(chosen, node.args)), kwargs)
            made.meta = dict(node.meta)
            self._where[made], self._memory[made] = device, made
            for number, position in enumerate(positions):
                parts[position] = (made, number)
        self._parts[node] = parts
        self._forget_copies(written_arguments(node))

    def _take_item(self, node: Node) -> None:
        source, position = node.args
        assert isinstance(source, Node)
        if source not in self._parts:
            made = self.graph.node_copy(node, self._made.__getitem__)
            self._note(node, made, self._where[self._made[source]], memory_of=source)
            return
        part, number = self._parts[source][position]  # type: ignore[index]
        self._note(node, self.graph.call_function(operator.getitem, (part, number)), self._where[part])

    def _note(self, node: Node, made: Node, device: torch.device, memory_of: Node | None = None) -> None:
        self._made[node] = made
        self._where[made] = device
        self._memory[made] = made if memory_of is None else self._memory[self._made[memory_of]]

    def _at(self, value: Node, device: torch.device) -> Node:
        """A value on a device, copied if necessary."""
        if self._where[value] == device:
            return value
        key = (value, device)
        if key not in self._copies:
            copy = self.graph.call_function(TO_COPY, (value,), {"device": device})
            self._where[copy], self._memory[copy], self._copies[key] = device, copy, copy
        return self._copies[key]

    def _forget_copies(self, written: Iterable[Node]) -> None:
        """Drop copies of values that were written to."""
        memories = {self._memory[self._made[node]] for node in written}
        self._copies = {key: copy for key, copy in self._copies.items() if self._memory[key[0]] not in memories}

    def _device_for(self, node: Node) -> torch.device:
        bound = {self._where[self._made[value]] for value in self._bound_to_device(node)}
        if len(bound) > 1:
            raise CaptureError(
                f"The operation {node.target} writes to tensors of several stages, which are on {len(bound)} devices. "
                "Write to each of them in its own stage, or put the stages on one device."
            )
        if bound:
            return bound.pop()
        stage = stage_of(node)
        if stage is not None:
            return self._devices[stage % len(self._devices)]
        # Updates belong to no stage: they run on the device of the weights.
        places = [self._where[self._made[value]] for value in node.all_input_nodes if value in self._made]
        return next((place for place in places if place != self._devices[0]), self._devices[0])

    def _by_device(self, values: Any) -> dict[torch.device, list[int]]:
        found: dict[torch.device, list[int]] = {}
        for position, value in enumerate(items(values)):
            found.setdefault(self._where[self._made[value]], []).append(position)
        return found

    def _bound_to_device(self, node: Node) -> list[Node]:
        """The arguments that must not be copied: those that are written to, and bases of views."""
        return [*self._aliased(node), *hidden_writes(node)]

    @staticmethod
    def _aliased(node: Node) -> list[Node]:
        return [value for value, _ in aliased_arguments(node)]
