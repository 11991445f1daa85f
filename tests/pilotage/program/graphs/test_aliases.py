from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.program.graphs.aliases import Memories, aliased_arguments


def memories(function, *inputs):
    graph = make_fx(function)(*inputs)
    nodes = [node for node in graph.graph.nodes if node.op in ("placeholder", "call_function")]
    return Memories(graph.graph), nodes


def test_a_view_is_written_to_with_its_base():
    def function(x):
        y = x.sin()
        y[0].add_(1)
        return y.exp()

    found, (x, sine, *_, exponential) = memories(function, torch.ones(2, 3))
    last = found.position[exponential]
    assert found.written(sine, found.position[sine] + 1, last)
    assert not found.written(sine, 0, found.position[sine])
    assert not found.written(x, 0, last)
    assert not found.written(exponential, 0, last)


def test_parts_of_a_split_are_views_and_several_results_are_not():
    def function(x):
        first, second = x.sin().split(1)
        first.mul_(2)
        values, places = second.sort()
        values.mul_(3)
        return second, places

    found, nodes = memories(function, torch.ones(2, 3))
    last = len(nodes)
    sine, *items = [n for n in nodes if n.target is torch.ops.aten.sin.default or n.name.startswith("getitem")]
    first, second, values, places = items
    assert all(found.written(node, 0, last) for node in (sine, first, second, values))
    assert not found.written(places, 0, last)


@pytest.mark.parametrize(
    ("function", "expected"),
    [(lambda x: x.view(6), [False]), (lambda x: x.add_(1), [True]), (lambda x: x.sin(), [])],
    ids=["view", "write", "new"],
)
def test_arguments_whose_memory_is_used_are_found(function, expected):
    graph = make_fx(function)(torch.ones(2, 3))
    operation = next(node for node in graph.graph.nodes if node.op == "call_function")
    assert [writes for _, writes in aliased_arguments(operation)] == expected
