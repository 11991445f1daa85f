"""Programs restored from plain data behave like the originals."""

from __future__ import annotations

import json
from itertools import product

import pytest
import torch
from torch import nn
from torch.fx import Graph, GraphModule
from torch.nn import functional

import pilotage
from pilotage.errors import CaptureError, ProgramFileError
from pilotage.optim.lamb import Lamb
from pilotage.storage.graph_text import graph_from_data, graph_to_data
from pilotage.storage.program_text import program_from_data, program_to_data


class Network(nn.Module):
    """Constants, infinities, slices, types and random numbers, as in graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.arange(4.0)
        self.layer = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        mask = torch.full((4, 4), float("-inf")).triu(1).to(torch.float64)
        y = self.norm(self.layer(x)) + self.table
        y = torch.softmax(y @ mask.exp().float() + (mask * 0).nan_to_num().float()[0], dim=-1)
        y = functional.dropout(y, 0.25, self.training)[:, 1:]
        return y.std(dim=1, correction=0), functional.mse_loss(y, torch.zeros_like(y))


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, centered=True),
    "lamb": lambda p: Lamb(p, lr=0.1),
}


def through_text(program):
    data, constants = program_to_data(program)
    return program_from_data(json.loads(json.dumps(data)), constants)


POOLED = {"gradient_accumulation": 2}
SAMPLE = [("sgd", {}), ("lamb", POOLED)]
REST = [each for each in product(OPTIMIZERS, ({}, POOLED)) if each not in SAMPLE]


@pytest.mark.parametrize(
    ("optimizer", "options"), [*SAMPLE, *(pytest.param(*each, marks=pytest.mark.slow) for each in REST)]
)
def test_a_program_read_from_data_trains_as_before(optimizer, options, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Network)
    first = pilotage.training(theirs, OPTIMIZERS[optimizer](theirs.parameters()), **options)
    second = pilotage.training(mine, OPTIMIZERS[optimizer](mine.parameters()), **options)
    first.compile(torch.randn(6, 4))
    program = first._executor.session.program
    again = through_text(program)
    assert again.layout == program.layout
    assert again.plan == program.plan
    assert (again.inputs, again.written_buffers) == (program.inputs, program.written_buffers)
    second._executor.adopt(again)
    for seed in range(3):
        batch = torch.randn(6, 4)
        torch.manual_seed(seed)
        outputs = second(batch)
        torch.manual_seed(seed)
        assert_equal(outputs, first(batch))
    assert_same_state(mine, theirs)
    assert second.record.compilations == 0


def test_a_program_of_the_eager_tier_cannot_be_written():
    infer = pilotage.inference(nn.Linear(2, 2), tier="eager")
    infer(torch.ones(1, 2))
    with pytest.raises(ProgramFileError, match="eager tier"):
        program_to_data(infer._executor.session.program)


def test_operations_keep_the_users_line():
    infer = pilotage.inference(Network())
    infer.compile(torch.ones(3, 4))
    (computation,) = infer._executor.session.program.computations.values()
    nodes, constants = graph_to_data(computation.graph)
    again = graph_from_data(json.loads(json.dumps(nodes)), constants)
    lines = [node.meta.get("stack_trace") for node in computation.graph.graph.nodes]
    assert [node.meta.get("stack_trace") for node in again.graph.nodes] == lines
    assert any(line and __file__ in line for line in lines)


def test_an_operation_that_torch_does_not_have_is_refused_by_name():
    nodes = [
        {
            "op": "call_function",
            "name": "f",
            "target": "aten::not_there.default",
            "args": {"tuple": []},
            "kwargs": {"dict": {}},
            "line": None,
        }
    ]
    with pytest.raises(ProgramFileError, match=r"aten::not_there.default, which torch .* does not have"):
        graph_from_data(nodes, {})


def test_a_constant_that_is_not_a_tensor_is_refused():
    # torch 2.13 can write a generator into a graph; with torch 2.11, capture refuses it.
    root, graph = nn.Module(), Graph()
    root.generator = torch.Generator()
    own = graph.get_attr("generator")
    graph.output([graph.call_function(torch.ops.aten.rand.generator, ([3],), {"generator": own})])
    with pytest.raises(CaptureError, match="forward uses a Generator that cannot be written"):
        graph_to_data(GraphModule(root, graph))


def test_an_argument_that_cannot_be_written_is_refused():
    graph = Graph()
    graph.output([graph.call_function(torch.ops.aten.ones.default, (range(3),))])
    with pytest.raises(CaptureError, match="argument of type range cannot be written"):
        graph_to_data(GraphModule(nn.Module(), graph))
