"""Graphs come back from JSON as they were, and nothing that no graph holds gets into one."""

from __future__ import annotations

import json

import pytest
import torch
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.errors import CaptureError, ProgramFileError
from pilotage.program.graphs.labels import add_label, labels_of
from pilotage.program.graphs.origins import scope_of, set_scope, set_stage, stage_of
from pilotage.storage.graph_text import graph_from_data, graph_to_data

aten = torch.ops.aten
TABLE = torch.arange(6.0).reshape(2, 3)


def function(x):
    values, places = torch.max(x @ TABLE, dim=1)
    return torch.where(values > 0, values, values * float("-inf")).to(torch.float64), places


def traced():
    return make_fx(function)(torch.randn(4, 2))


def through_json(graph):
    nodes, constants = graph_to_data(graph)
    return graph_from_data(json.loads(json.dumps(nodes)), constants)


def entries():
    nodes, constants = graph_to_data(traced())
    return json.loads(json.dumps(nodes)), constants


def test_a_restored_graph_computes_the_same(assert_equal):
    x, graph = torch.randn(4, 2), traced()
    restored = through_json(graph)
    assert_equal(restored(x), graph(x))
    assert [(node.op, node.name) for node in restored.graph.nodes] == [
        (node.op, node.name) for node in graph.graph.nodes
    ]


def test_the_metadata_of_a_node_is_restored():
    graph = traced()
    node = next(node for node in graph.graph.nodes if node.op == "call_function")
    node.meta["stack_trace"] = "model.py:12"
    set_stage(node, 2)
    set_scope(node, "encoder/layer")
    add_label(node, "hidden")
    restored = next(each for each in through_json(graph).graph.nodes if each.name == node.name)
    assert restored.meta["stack_trace"] == "model.py:12"
    assert (stage_of(restored), scope_of(restored), list(labels_of(restored))) == (2, "encoder/layer", ["hidden"])


def test_a_source_line_that_cannot_be_printed_is_dropped():
    nodes, constants = entries()
    nodes[1]["line"] = "a\x1b[2Jb"
    (node,) = (node for node in graph_from_data(nodes, constants).graph.nodes if node.name == nodes[1]["name"])
    assert "stack_trace" not in node.meta


def with_call(target, args, kwargs=None):
    """A graph of one argument and one call, as data."""

    def node(op, name, target, args=(), kwargs=None):
        kwargs = {} if kwargs is None else kwargs
        return {"op": op, "name": name, "target": target, "args": {"tuple": list(args)}, "kwargs": {"dict": kwargs}}

    call = node("call_function", "y", target, args, kwargs)
    return [node("placeholder", "x", "x"), call, node("output", "output", "output", [[{"node": 1}]])]


X = {"node": 0}


def test_a_call_written_by_hand_runs(assert_equal):
    graph = graph_from_data(with_call("aten::clamp.default", [X], {"max": 0.5}), {})
    assert_equal(graph(torch.tensor([0.2, 0.9])), [torch.tensor([0.2, 0.5])])


@pytest.mark.parametrize(
    ("target", "args", "kwargs", "reason"),
    [
        ("os::system.default", [X], {}, "which torch .* does not have"),
        ("aten::no_such_operation.default", [X], {}, "which torch .* does not have"),
        ("aten::clamp", [X], {}, "library::name.overload"),
        ("aten::__class__.default", [X], {}, "library::name.overload"),
        ("aten::__init__.default", [X], {}, "which torch .* does not have"),
        ("__import__('os')::a.b", [X], {}, "library::name.overload"),
        ("aten::relu.default", [X, X], {}, "the number of arguments of aten::relu.default"),
        ("aten::relu.default", [], {}, "also self"),
        ("aten::clamp.default", [X], {"self": X}, "a keyword of aten::clamp.default"),
        ("aten::clamp.default", [X], {"minimum": 1}, "a keyword of aten::clamp.default"),
        ("aten::clamp.default", [X, "text"], {}, "min of aten::clamp.default"),
        ("getitem", [X, "x"], {}, "a node and a whole number"),
        ("getitem", [X, 0], {"a": 1}, "a node and a whole number"),
        ("aten::from_file.default", ["name"], {}, "from_file"),
    ],
)
def test_a_call_that_no_capture_makes_is_refused(target, args, kwargs, reason):
    with pytest.raises(ProgramFileError, match=reason):
        graph_from_data(with_call(target, args, kwargs), {})


def change(nodes, number, **entry):
    nodes[number] = {**nodes[number], **entry}
    return nodes


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda nodes: nodes[:-1], "a graph without an output"),
        (lambda nodes: [*nodes, nodes[-1]], "nothing after the output"),
        (lambda nodes: change(nodes, 1, name=nodes[0]["name"]), "a name that no other node has"),
        (lambda nodes: change(nodes, 1, name="import os"), "the name of a node"),
        (lambda nodes: change(nodes, 1, name="lambda"), "the name of a node"),
        (lambda nodes: change(nodes, 0, op="call_module"), "a placeholder, a constant"),
        (lambda nodes: change(nodes, 0, args={"tuple": [1]}), "a placeholder, a constant"),
        (lambda nodes: change(nodes, 0, args=[]), "a tuple and a table"),
        (lambda nodes: change(nodes, 0, code="print()"), "only args"),
        (lambda nodes: change(nodes, 0, stage=-1), "a stage"),
        (lambda nodes: ["placeholder", *nodes], "a node"),
    ],
)
def test_a_damaged_graph_is_refused(damage, reason):
    nodes, constants = entries()
    with pytest.raises(ProgramFileError, match=reason):
        graph_from_data(damage(nodes), constants)


@pytest.mark.parametrize("name", ["forward", "a.b", "class", "__dict__"])
def test_a_constant_cannot_replace_an_attribute_of_the_module(name):
    with pytest.raises(ProgramFileError, match="the name of a constant"):
        graph_from_data(entries()[0], {name: TABLE})


def test_only_constants_of_the_file_are_read():
    nodes, _ = entries()
    with pytest.raises(ProgramFileError, match="a placeholder, a constant"):
        graph_from_data(nodes, {})


def test_a_function_of_python_cannot_be_written():
    graph = Graph()
    graph.output([graph.call_function(print, (graph.placeholder("x"),))])
    with pytest.raises(CaptureError, match="it is not an operation of torch's dispatcher"):
        graph_to_data(GraphModule(torch.nn.Module(), graph))


def test_a_constant_that_is_not_a_tensor_cannot_be_written():
    root, graph = torch.nn.Module(), Graph()
    root.settings = {"a": 1}
    graph.output([graph.get_attr("settings")])
    with pytest.raises(CaptureError, match="forward uses a dict that cannot be written to a file"):
        graph_to_data(GraphModule(root, graph))
