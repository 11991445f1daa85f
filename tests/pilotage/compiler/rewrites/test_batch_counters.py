"""Counters are incremented together."""

from __future__ import annotations

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pilotage.compiler.rewrites.batch_counters import add_counters_together

aten = torch.ops.aten


def step(first, second, half, picture, third):
    return first + 1, picture + 1, half + 1, (second + 1) * 2, third + 3, first + 2


def arguments():
    return [torch.tensor(4), torch.tensor(7), torch.tensor(0.5), torch.ones(2, 3), torch.tensor(9)]


def test_counters_with_the_same_step_are_one_operation_and_count_on():
    graph = make_fx(step, tracing_mode="fake")(*arguments())
    add_counters_together(graph)
    graph.graph.lint()
    graph.recompile()
    together = [node for node in graph.graph.nodes if node.target is aten._foreach_add.Scalar]
    assert [len(node.args[0]) for node in together] == [2]
    for found, expected in zip(graph(*arguments()), step(*arguments()), strict=True):
        assert torch.equal(found, expected)
        assert found.dtype == expected.dtype
