"""Graphs as plain data, so that programs can be stored without pickle.

A graph is a list of nodes; each names an operation of torch's dispatcher and its arguments. FX writes names and
keywords of a graph into Python source and runs it, so everything from a file is checked before it gets into a graph.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.program.graphs.labels import add_label, labels_of
from pilotage.program.graphs.origins import scope_of, set_scope, set_stage, stage_of
from pilotage.storage.argument_text import argument_from_data, argument_to_data
from pilotage.storage.permission import UNTRUSTED, Permission
from pilotage.storage.plain_data import (
    MAXIMUM_TEXT_LENGTH,
    array,
    identifier,
    integer,
    invalid_value,
    is_identifier,
    table,
    text,
    texts,
)
from pilotage.torch_private import OpOverload, overload_name, schema_of

MAXIMUM_NODES = 500_000
"""The limit for one graph. A training step of a hundred layers has about 30,000 nodes."""

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"getitem": operator.getitem}
_KEYS = {"op", "name", "target", "args", "kwargs", "line", "stage", "scope", "labels"}


def graph_to_data(graph: GraphModule) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """The nodes of a graph as plain data, and its constant tensors."""
    numbers = {node: number for number, node in enumerate(graph.graph.nodes)}
    constants: dict[str, Tensor] = {}
    nodes = []
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            constants[str(node.target)] = _constant(graph, str(node.target))
        nodes.append(
            {
                "op": node.op,
                "name": node.name,
                "target": _target_name(node),
                "args": argument_to_data(node.args, numbers),
                "kwargs": argument_to_data(dict(node.kwargs), numbers),
                "line": node.meta.get("stack_trace"),
                "stage": stage_of(node),
                "scope": scope_of(node),
                "labels": list(labels_of(node)),
            }
        )
    return nodes, constants


def graph_from_data(
    nodes: list[dict[str, Any]], constants: Mapping[str, Tensor], permission: Permission = UNTRUSTED
) -> GraphModule:
    """Restore a graph from plain data; raises if the data is invalid or calls an operation that is not allowed."""
    reader = _Reader(_attributes(constants), permission)
    for entry in array(nodes, "a graph", MAXIMUM_NODES):
        reader.read(table(entry, "a node"))
    reader.finish()
    root = torch.nn.Module()
    for name, tensor in constants.items():
        root.register_buffer(name, tensor, persistent=False)
    return GraphModule(root, reader.graph)


class _Reader:
    """Builds a graph node by node, and checks each one."""

    def __init__(self, constants: frozenset[str], permission: Permission) -> None:
        self.graph = Graph()
        self._constants = constants
        self._permission = permission
        self._made: list[Node] = []
        self._names: set[str] = set()
        self._is_finished = False

    def read(self, entry: dict[str, Any]) -> None:
        """Add the node of this entry."""
        if self._is_finished or not entry.keys() <= _KEYS:
            raise invalid_value(
                "a node", sorted(entry), f"only {', '.join(sorted(_KEYS))}, and nothing after the output"
            )
        name = identifier(entry["name"], "the name of a node")
        args = argument_from_data(entry["args"], self._made)
        kwargs = argument_from_data(entry["kwargs"], self._made)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise invalid_value(f"the arguments of {name}", [entry["args"], entry["kwargs"]], "a tuple and a table")
        node = self._node(entry["op"], entry["target"], name, args, kwargs)
        if node.name != name or name in self._names:
            raise invalid_value("the name of a node", name, "a name that no other node has")
        self._names.add(name)
        self._made.append(node)
        _describe(node, entry)

    def finish(self) -> None:
        """Raise if the graph has no output."""
        if not self._is_finished:
            raise ProgramFileError(
                "The program contains a graph without an output. The file was modified or is damaged."
            )

    def _node(self, kind: Any, target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        match kind:
            case "placeholder" if not args and not kwargs:
                # FX writes the target into source without a check.
                return self.graph.create_node("placeholder", name, name=name)
            case "get_attr" if not args and not kwargs and isinstance(target, str) and target in self._constants:
                return self.graph.create_node("get_attr", target, name=name)
            case "call_function":
                function = _operation(target)
                _check_call(function, target, args, kwargs, self._permission)
                return self.graph.create_node("call_function", function, args, kwargs, name)
            case "output" if len(args) == 1 and not kwargs:
                self._is_finished = True
                end: Node = self.graph.output(*args)
                return end
        raise invalid_value(
            "a node", [kind, target], "a placeholder, a constant of the file, a call of an operation or an output"
        )


def _describe(node: Node, entry: dict[str, Any]) -> None:
    """Set the metadata of a node; a source line that is not printable text is dropped."""
    line = entry.get("line")
    if isinstance(line, str) and len(line) <= MAXIMUM_TEXT_LENGTH and line.isprintable():
        node.meta["stack_trace"] = line
    if entry.get("stage") is not None:
        set_stage(node, integer(entry["stage"], "a stage", 0, 1 << 16))
    if entry.get("scope"):
        set_scope(node, text(entry["scope"], "the names around a node"))
    for label in texts(entry.get("labels", ()), "the labels of a node"):
        add_label(node, label)


def _attributes(constants: Mapping[str, Tensor]) -> frozenset[str]:
    """The names of constants, which become attributes of a module and must not clash with its own."""
    for name in constants:
        if not is_identifier(name) or name in _attributes_of_graphs():
            raise invalid_value("the name of a constant", name, "a name that is not an attribute of modules")
    return frozenset(constants)


@functools.cache
def _attributes_of_graphs() -> frozenset[str]:
    return frozenset(dir(GraphModule(torch.nn.Module(), Graph())))


def _check_call(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], permission: Permission
) -> None:
    """Raise unless a call has valid arguments and is allowed."""
    if not isinstance(function, OpOverload):
        if kwargs or len(args) != 2 or not isinstance(args[0], Node) or type(args[1]) is not int:
            raise invalid_value(f"the arguments of {name}", [args, kwargs], "a node and a whole number")
        return
    permission.check(function)
    arguments = schema_of(function).arguments
    by_position = [argument.name for argument in arguments if not argument.kwarg_only]
    if len(args) > len(by_position):
        raise invalid_value(f"the number of arguments of {name}", len(args), f"at most {len(by_position)}")
    open_names = {argument.name for argument in arguments} - set(by_position[: len(args)])
    if not kwargs.keys() <= open_names:
        unknown = sorted(kwargs.keys() - open_names)
        raise invalid_value(f"a keyword of {name}", unknown[0], f"one of {', '.join(sorted(open_names)) or 'none'}")
    given = {**dict(zip(by_position, args, strict=False)), **kwargs}
    for argument in arguments:
        if isinstance(given.get(argument.name), str) and "str" not in str(argument.type):
            raise invalid_value(f"{argument.name} of {name}", given[argument.name], f"a value of type {argument.type}")
    missing = [
        each.name for each in arguments if each.name in open_names - kwargs.keys() and not each.has_default_value()
    ]
    if missing:
        raise invalid_value(f"the arguments of {name}", [*args, *kwargs], f"also {', '.join(missing)}")


def _constant(graph: GraphModule, name: str) -> Tensor:
    value = getattr(graph, name)
    if not isinstance(value, Tensor):
        raise CaptureError(f"forward uses a {type(value).__name__} that cannot be written to a file.")
    return value


def _target_name(node: Node) -> str:
    if node.op != "call_function":
        return str(node.target)
    if isinstance(node.target, OpOverload):
        return schema_of(node.target).name + "." + overload_name(node.target)
    for name, function in _FUNCTIONS.items():
        if function is node.target:
            return name
    raise CaptureError(
        f"The operation {node.target} cannot be written to a file: it is not an operation of torch's dispatcher."
    )


def _operation(name: Any) -> Callable[..., Any]:
    if text(name, "an operation") in _FUNCTIONS:
        return _FUNCTIONS[name]
    namespace, _, rest = name.partition("::")
    operation, _, overload = rest.rpartition(".")
    # Some operations of torch are named like methods of Python, such as __lshift__.
    if not all(map(is_identifier, (namespace, operation.strip("_"), overload))):
        raise invalid_value("an operation", name, "library::name.overload")
    try:
        found = getattr(getattr(getattr(torch.ops, namespace), operation), overload)
    except AttributeError:
        found = None
    if not isinstance(found, OpOverload):
        raise ProgramFileError(
            f"The program calls {name}, which torch {torch.__version__} does not have. "
            "Import the library that defines it, or compile the program again."
        )
    return found
