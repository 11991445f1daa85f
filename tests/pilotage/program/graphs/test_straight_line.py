import linecache
import traceback
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.errors import CaptureError
from pilotage.program.graphs.straight_line import FILE_NAME, straight_line


def traced(function, *arguments):
    return make_fx(function)(*arguments)


def test_straight_line_code_computes_what_the_graph_computes():
    network = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 4)).eval()
    images = torch.randn(2, 1, 8, 8)
    graph = traced(lambda batch: [network(batch), network(batch).max(dim=1).values], images)
    assert all(torch.equal(a, b) for a, b in zip(straight_line(graph)(images), graph(images), strict=True))


def test_straight_line_code_writes_to_its_arguments_as_the_graph_does():
    def update(weight, gradient):
        weight.add_(gradient, alpha=-0.5)
        return [weight * 2]

    graph = traced(update, torch.zeros(3), torch.ones(3))
    weight = torch.zeros(3)
    (doubled,) = straight_line(graph)(weight, torch.ones(3))
    assert weight.tolist() == [-0.5] * 3
    assert doubled.tolist() == [-1.0] * 3


def test_constants_devices_types_and_infinity_are_bound():
    table = torch.arange(3.0)

    def function(values):
        filled = torch.full((3,), float("inf"), dtype=torch.float64, device=values.device)
        return [torch.minimum(values + table, filled.float())]

    graph = traced(function, torch.zeros(3))
    assert straight_line(graph)(torch.ones(3))[0].tolist() == [1.0, 2.0, 3.0]


def test_a_graph_without_operations_returns_its_arguments():
    argument = torch.ones(2)
    assert straight_line(traced(lambda values: [values], argument))(argument)[0] is argument


def test_values_are_dropped_at_their_last_use():
    def function(values):
        return [values.exp().log().sum()]

    source = straight_line(traced(function, torch.ones(4)))
    text = "".join(linecache.getlines(source.__code__.co_filename))
    assert "exp = None" in text
    assert "values_1 = None" in text


def test_a_failing_operation_is_named_by_the_line_of_its_traceback():
    graph = traced(lambda a, b: [a.exp() @ b], torch.ones(2, 3), torch.ones(3, 2))
    with pytest.raises(RuntimeError) as caught:
        straight_line(graph)(torch.ones(2, 3), torch.ones(5, 2))
    frame = next(
        each for each in traceback.extract_tb(caught.value.__traceback__) if each.filename.startswith(FILE_NAME)
    )
    assert frame.line.startswith("mm = ")


def test_nodes_may_have_the_names_of_bound_values():
    graph = torch.fx.Graph()
    values = graph.placeholder("_value")
    doubled = graph.create_node("call_function", torch.ops.aten.mul.Scalar, (values, 2), {}, "_call_aten_add_Scalar")
    total = graph.create_node("call_function", torch.ops.aten.add.Scalar, (doubled, float("inf")), {}, "total")
    graph.output([doubled, total])
    doubled, total = straight_line(torch.fx.GraphModule(nn.Module(), graph))(torch.ones(1))
    assert (doubled.item(), total.item()) == (2.0, float("inf"))


@pytest.mark.parametrize("name", ["x=print()", "x\nprint()", "class", "é"])
def test_invalid_names_never_get_into_source(name):
    graph = torch.fx.Graph()
    values = graph.placeholder("values")
    node = graph.create_node("call_function", torch.ops.aten.mul.Scalar, (values, 2), {}, "twice")
    node.kwargs = {name: 3}
    graph.output([node])
    with pytest.raises(CaptureError, match="is not a Python identifier"):
        straight_line(SimpleNamespace(graph=graph))
