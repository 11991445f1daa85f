"""The steps of a captured program as operations and tensors."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.fx import GraphModule, Node

from pilotage.prediction.trace.classification import name_of, work_of
from pilotage.prediction.trace.operations import Category, Phase, StepTrace, TracedOperation, TracedTensor
from pilotage.prediction.trace.tensor_values import described, tensors_in
from pilotage.prediction.trace.work import WorkKind
from pilotage.program.graphs.aliases import Memories
from pilotage.program.graphs.forward_marks import is_forward
from pilotage.program.graphs.labels import gradient_of, labels_of
from pilotage.program.graphs.origins import module_of, stage_of
from pilotage.program.graphs.source_lines import line_of
from pilotage.program.layout import Section
from pilotage.program.program import Action, Computation, Program

__all__ = ["traced_steps"]

_CATEGORIES = {
    Section.PARAMETERS: Category.WEIGHTS,
    Section.BUFFERS: Category.WEIGHTS,
    Section.SLOTS: Category.OPTIMIZER,
    Section.COUNTERS: Category.OPTIMIZER,
    Section.VALUES: Category.OPTIMIZER,
    Section.GRADIENTS: Category.GRADIENTS,
}


def traced_steps(program: Program) -> dict[Action, StepTrace]:
    """Each step of a program that has graphs."""
    found = {}
    for action, computation in program.computations.items():
        if computation.graph is not None:
            found[action] = _GraphTrace(program, action, computation, computation.graph).step()
    return found


class _GraphTrace:
    """Reads one graph."""

    def __init__(self, program: Program, action: Action, computation: Computation, graph: GraphModule) -> None:
        self._program = program
        self._action = action
        self._computation = computation
        self._module = graph
        self._graph = graph.graph
        self._memories = Memories(self._graph)
        self._position = self._memories.position
        gradients = {gradient_of(name) for name in program.layout.trained}
        self._gradients = {node for node in self._graph.nodes if gradients.intersection(labels_of(node))}
        self._end_of_backward = max((self._position[node] for node in self._gradients), default=-1)
        self._parameter_names: dict[Node, str] = {}
        self._operations: list[TracedOperation] = []
        self._index: dict[Node, int] = {}

    def step(self) -> StepTrace:
        """The whole step."""
        arguments = self._arguments()
        for node in self._graph.nodes:
            if node.op == "call_function":
                self._note(node)
            else:
                self._index[node] = len(self._operations) - 1
        return StepTrace(operations=tuple(self._operations), tensors=(*arguments, *self._tensors()))

    # Operations

    def _note(self, node: Node) -> None:
        values = [_value(each) for each in node.args]
        named = {key: _value(each) for key, each in node.kwargs.items()}
        work = work_of(node.target, values, named, node.meta.get("val"))
        if work.kind is WorkKind.FREE:
            self._index[node] = max(0, len(self._operations) - 1)
            return
        self._index[node] = len(self._operations)
        self._operations.append(
            TracedOperation(
                name=name_of(node.target),
                phase=self._phase(node),
                work=work,
                module=module_of(node),
                stage=stage_of(node),
                line=line_of(node),
                output=described(node.meta.get("val")),
                parameters=tuple(self._weights_of(node)),
            )
        )

    def _phase(self, node: Node) -> Phase:
        if self._action is Action.UPDATE:
            return Phase.UPDATE
        if self._action is Action.INFER or is_forward(node):
            return Phase.FORWARD
        if self._action is Action.TRAIN and self._position[node] > self._end_of_backward:
            return Phase.UPDATE
        return Phase.BACKWARD

    def _weights_of(self, node: Node) -> Iterator[str]:
        for value in node.all_input_nodes:
            name = self._parameter_names.get(self._memories.memory(value))
            if name is not None:
                yield name

    # Tensors

    def _arguments(self) -> list[TracedTensor]:
        """The state and the inputs."""
        placeholders = [node for node in self._graph.nodes if node.op == "placeholder"]
        described = [
            *self._state(),
            *((f"input {i}", Category.INPUTS, "", "") for i in range(len(self._program.inputs))),
        ]
        layout = self._program.layout
        on_host = {f"{slot.name} of {slot.parameter}" for slot in layout.slots if layout.is_on_host(slot)}
        found = []
        for node, (name, category, module, owner) in zip(placeholders, described, strict=False):
            size = _storage_bytes(node.meta.get("val"))
            if category is Category.WEIGHTS:
                self._parameter_names[node] = name
            found.append(
                TracedTensor(
                    name=name,
                    bytes=size,
                    category=category,
                    first=-1,
                    last=1 << 60,
                    module=module,
                    owner=owner,
                    on_host=name in on_host,
                    is_stored=category is not Category.INPUTS,
                )
            )
        return found

    def _state(self) -> Iterator[tuple[str, Category, str, str]]:
        layout = self._program.layout
        for section in self._computation.sections:
            category = _CATEGORIES[section]
            match section:
                case Section.PARAMETERS:
                    names = [(name, name) for name in layout.parameters]
                case Section.BUFFERS:
                    names = [(name, name) for name in layout.buffers]
                case Section.SLOTS:
                    names = [(f"{slot.name} of {slot.parameter}", slot.parameter) for slot in layout.slots]
                case Section.GRADIENTS:
                    names = [(f"pooled gradient of {name}", name) for name in layout.trained]
                case _:
                    names = [(section.value, "")] * len(layout.section(section))
            for name, owner in names:
                yield name, category, _module(owner), owner

    def _tensors(self) -> Iterator[TracedTensor]:
        """The tensors that the operations create, each with its lifetime."""
        groups: dict[Node, list[Node]] = defaultdict(list)
        for node in self._graph.nodes:
            groups[self._memories.memory(node)].append(node)
        results = set(self._graph.output_node().all_input_nodes)
        for base, members in groups.items():
            if base.op not in ("call_function", "get_attr"):
                continue
            size = self._created_bytes(base)
            if size:
                yield self._tensor(base, members, size, results)

    def _tensor(self, base: Node, members: list[Node], size: int, results: set[Node]) -> TracedTensor:
        uses = [user for member in members for user in member.users]
        stays = any(member in results for member in members) or base.op == "get_attr"
        last = max((self._index[user] for user in uses if user.op == "call_function"), default=self._index[base])
        made, held = self._list_of(base)
        return TracedTensor(
            name=base.name,
            bytes=size,
            category=self._category(base, members, uses),
            first=-1 if base.op == "get_attr" else made,
            last=1 << 60 if stays else last,
            held=held,
            module=module_of(base),
            line=line_of(base),
            stage=stage_of(base),
            is_stored=base.op == "get_attr",
        )

    def _list_of(self, base: Node) -> tuple[int, int]:
        """The operation that made a tensor, and until when it is in a list of results; -1 if it is in none.

        An operation that is recomputed may hand out a result long before another one.
        """
        if base.target is not operator.getitem or not isinstance(base.args[0], Node):
            return self._index[base], -1
        return self._index[base.args[0]], max(self._index[user] for user in base.args[0].users)

    def _created_bytes(self, base: Node) -> int:
        """The bytes that a node allocates."""
        if base.op == "get_attr":
            value = getattr(self._module, str(base.target), None)
            return _storage_bytes(value)
        if base.target is operator.getitem:
            return _storage_bytes(base.meta.get("val"))
        value = base.meta.get("val")
        if isinstance(value, Tensor):
            return _storage_bytes(value)
        taken = {user.args[1] for user in base.users if user.target is operator.getitem}
        # Each result that is taken out of the list has its own lifetime.
        return sum(_storage_bytes(each) for i, each in enumerate(value or ()) if i not in taken)

    def _category(self, base: Node, members: list[Node], uses: list[Node]) -> Category:
        if self._action is Action.UPDATE:
            return Category.TEMPORARIES
        if any(member in self._gradients for member in members):
            return Category.GRADIENTS
        if is_forward(base) and any(user.op == "call_function" and not is_forward(user) for user in uses):
            return Category.ACTIVATIONS
        return Category.TEMPORARIES


def _value(argument: Any) -> Any:
    """An argument with fake tensors in place of nodes."""
    if isinstance(argument, Node):
        return argument.meta.get("val")
    if isinstance(argument, list | tuple):
        return [_value(each) for each in argument]
    return argument


def _storage_bytes(value: Any) -> int:
    return sum(each.untyped_storage().nbytes() for each in tensors_in(value))


def _module(name: str) -> str:
    return name.rpartition(".")[0]
