"""Values offloaded to the host: graphs are captured for a card, and run on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.fx import Interpreter
from torch.nn import functional

from pilotage.capture.capture import Request, capture
from pilotage.capture.model import modes_of
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.passes.offloading import offloaded
from pilotage.program.program import Action
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten

CARD = torch.device("meta")
HOST = torch.device("cpu")
X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(5, 1))

    def forward(self, x):
        for layer in self.layers:
            # A value and a view of it are both needed in backward; the transposed weight is a view of state.
            x = torch.tanh(layer(x.reshape(5, 2, 2).flatten(1))) * self.scale
        changed = x.exp() + 1
        changed.mul_(0.5)
        return functional.mse_loss(changed.sigmoid(), torch.ones_like(x))


class OnTheProcessor(Interpreter):
    """Runs a graph on the CPU, whatever device it was captured for, with real copies."""

    def call_function(self, target, args, kwargs):
        if "device" in kwargs:
            kwargs = {**kwargs, "device": HOST}
        result = super().call_function(target, args, kwargs)
        return result.clone() if target is torch.ops.aten._to_copy.default else result


@pytest.fixture(scope="module")
def program():
    module = Network()
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    captured = capture(
        Request(
            module=module,
            arguments=flatten(((X,), {}))[1],
            inputs=[TensorSpec.of(X)],
            modes=modes_of(module),
            plan=read_optimizer(torch.optim.SGD(module.parameters(), lr=0.1), names),
            batching=Batching(),
            check_loss=False,
        )
    )
    for node in captured.computations[Action.TRAIN].graph.graph.nodes:
        if isinstance(node.meta.get("val"), Tensor):
            # A device that exists in every torch and is not the host.
            node.meta["val"] = node.meta["val"].to(CARD)
    return captured, module


def ways(program):
    """How many values are copied to the host, and how many back."""
    nodes = program.computations[Action.TRAIN].graph.graph.nodes
    copies = [node for node in nodes if node.target is torch.ops.aten._to_copy.default]
    devices = [node.kwargs["device"] for node in copies if "device" in node.kwargs]
    return devices.count(HOST), sum(device.type == CARD.type for device in devices)


def trained(program, module):
    computation = program.computations[Action.TRAIN]
    state = [parameter.detach().clone() for parameter in module.parameters()]
    rest = len([n for n in computation.graph.graph.nodes if n.op == "placeholder"]) - len(state) - 1
    numbers = [torch.zeros((), dtype=torch.float64), *[torch.full((), 0.1, dtype=torch.float64)] * (rest - 1)]
    outputs = OnTheProcessor(computation.graph).run(*state, *numbers, X)
    return [*outputs, *state]


def test_each_value_is_copied_to_the_host_and_back_once(program):
    captured, module = program
    waiting = offloaded(captured, 1)
    there, back = ways(waiting)
    assert ways(captured) == (0, 0)
    assert there == back > 4
    assert all(map(torch.equal, trained(waiting, module), trained(captured, module)))


def test_small_values_and_views_of_the_state_stay_on_the_device(program):
    captured, _ = program
    assert ways(offloaded(captured, 10_000)) == (0, 0)
    graph = offloaded(captured, 1).computations[Action.TRAIN].graph.graph
    moved = [node.args[0] for node in graph.nodes if node.kwargs.get("device") == HOST]
    assert all(node.op == "call_function" and node.target is not torch.ops.aten.t.default for node in moved)
