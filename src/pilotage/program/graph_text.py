"""Graphs as plain data, so that a program can lie in a file without pickle.

A graph is a list of nodes; each names an operation of torch's dispatcher and its arguments. Arguments that JSON does
not know are written as an object with one key: ``{"node": 3}``, ``{"dtype": "float32"}``, and so on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.program.labels import add_label, labels_of
from pilotage.program.stages import scope_of, set_scope, set_stage, stage_of

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"getitem": operator.getitem}

_SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "memory_format": {
        str(value): value
        for value in (
            torch.contiguous_format,
            torch.channels_last,
            torch.channels_last_3d,
            torch.preserve_format,
        )
    },
    "layout": {str(value): value for value in (torch.strided, torch.sparse_coo, torch.sparse_csr)},
    "float": {text: float(text) for text in ("inf", "-inf", "nan")},
}


def graph_to_data(graph: GraphModule) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """The nodes of a graph as plain data, and the tensors that are built into it."""
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
                "args": _to_data(node.args, numbers),
                "kwargs": _to_data(dict(node.kwargs), numbers),
                "line": node.meta.get("stack_trace"),
                "stage": stage_of(node),
                "scope": scope_of(node),
                "labels": list(labels_of(node)),
            }
        )
    return nodes, constants


def graph_from_data(nodes: list[dict[str, Any]], constants: Mapping[str, Tensor]) -> GraphModule:
    """The graph that was written as this data."""
    graph = Graph()
    made: list[Node] = []
    for entry in nodes:
        args, kwargs = _from_data(entry["args"], made), _from_data(entry["kwargs"], made)
        if entry["op"] == "output":
            node = graph.output(*args)
        else:
            target = _operation(entry["target"]) if entry["op"] == "call_function" else entry["target"]
            node = graph.create_node(entry["op"], target, args, kwargs, entry["name"])
        if entry["line"]:
            node.meta["stack_trace"] = entry["line"]
        if entry.get("stage") is not None:
            set_stage(node, entry["stage"])
        if entry.get("scope"):
            set_scope(node, entry["scope"])
        for label in entry.get("labels", ()):
            add_label(node, label)
        made.append(node)
    root = torch.nn.Module()
    for name, tensor in constants.items():
        root.register_buffer(name, tensor, persistent=False)
    return GraphModule(root, graph)


def _constant(graph: GraphModule, name: str) -> Tensor:
    value = getattr(graph, name)
    if not isinstance(value, Tensor):
        raise CaptureError(f"A {type(value).__name__} that forward uses cannot be written to a file.")
    return value


def _target_name(node: Node) -> str:
    if node.op != "call_function":
        return str(node.target)
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.name + "." + node.target._overloadname
    for name, function in _FUNCTIONS.items():
        if function is node.target:
            return name
    raise CaptureError(
        f"The operation {node.target} cannot be written to a file: it is no operation of torch's dispatcher."
    )


def _operation(name: str) -> Callable[..., Any]:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    namespace, _, rest = name.partition("::")
    operation, _, overload = rest.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(getattr(getattr(torch.ops, namespace), operation), overload)
    except AttributeError:
        raise ProgramFileError(
            f"The program calls {name}, which torch {torch.__version__} does not have. "
            "Import the library that defines it, or compile the program again."
        ) from None
    return found


def _to_data(value: Any, numbers: Mapping[Node, int]) -> Any:
    match value:
        case Node():
            return {"node": numbers[value]}
        case float() if value != value or value in (float("inf"), float("-inf")):
            return {"float": str(value)}
        case bool() | int() | float() | str() | None:
            return value
        case tuple():
            return {"tuple": [_to_data(item, numbers) for item in value]}
        case list():
            return [_to_data(item, numbers) for item in value]
        case dict():
            return {"dict": {str(key): _to_data(item, numbers) for key, item in value.items()}}
        case slice():
            return {"slice": [_to_data(item, numbers) for item in (value.start, value.stop, value.step)]}
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case torch.device():
            return {"device": str(value)}
        case torch.memory_format():
            return {"memory_format": str(value)}
        case torch.layout():
            return {"layout": str(value)}
        case complex():
            return {"complex": [value.real, value.imag]}
    raise CaptureError(f"An argument of type {type(value).__name__} cannot be written to a file: {value!r}.")


def _from_data(value: Any, made: list[Node]) -> Any:
    if isinstance(value, list):
        return [_from_data(item, made) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "node":
            return made[content]
        case "tuple":
            return tuple(_from_data(item, made) for item in content)
        case "dict":
            return {key: _from_data(item, made) for key, item in content.items()}
        case "slice":
            return slice(*(_from_data(item, made) for item in content))
        case "dtype":
            return _dtype(content)
        case "device":
            return torch.device(content)
        case "complex":
            return complex(*content)
        case "memory_format" | "layout" | "float":
            return _SPECIAL[kind][content]
    raise ProgramFileError(f"The program holds an argument of the unknown kind {kind!r}.")


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise ProgramFileError(f"The program holds the unknown data type {name!r}.")
    return found
