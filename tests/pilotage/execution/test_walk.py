from __future__ import annotations

import io
import pdb

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.errors import NonFiniteLossError


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.seen = 0

    def forward(self, x):
        self.seen += 1
        output = self.norm(self.layer(x))
        print("forward", self.seen)
        return output, functional.mse_loss(output, torch.zeros_like(output))


def training(module, **options):
    return pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9), **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"device_iterations": 3, "outputs": "all"},
        {"gradient_accumulation": 2, "replicas": 2, "outputs": "sum", "broadcast_buffers": False},
    ],
)
def test_the_eager_tier_gives_the_same_bits_as_the_graph_tier(options, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Network)
    eager, graph = training(mine, tier="eager", **options), training(theirs, tier="graph", **options)
    for _ in range(2):
        batch = torch.randn(12, 3)
        assert_equal(eager(batch), graph(batch))
    assert_same_state(mine, theirs)


def test_the_eager_tier_runs_python_at_each_step_and_the_graph_tier_once(capsys):
    for tier, runs in (("eager", 6), ("graph", 1)):
        module = Network()
        step = training(module, tier=tier, device_iterations=3, check="off")
        step(torch.randn(12, 3))
        step(torch.randn(12, 3))
        assert module.seen == runs
        assert capsys.readouterr().out.splitlines() == [f"forward {number + 1}" for number in range(runs)]


def test_a_breakpoint_in_the_eager_tier_sees_numbers():
    class Stopping(Network):
        def forward(self, x):
            debugger = pdb.Pdb(stdin=io.StringIO("p float(x.sum())\nc\n"), stdout=said, readrc=False, nosigint=True)
            debugger.use_rawinput = False
            debugger.set_trace()
            return super().forward(x)

    said = io.StringIO()
    step = training(Stopping(), tier="eager")
    step(torch.full((2, 3), 2.0))
    assert "12.0" in said.getvalue()
    assert step.record.updates == 1


def test_booleans_are_combined_by_or_if_outputs_are_summed(assert_equal):
    class Positive(nn.Module):
        def forward(self, x):
            return x > 0, x, (x > 0).sum()

    program = pilotage.inference(Positive(), device_iterations=3, outputs="sum")
    anything, total, count = program(torch.tensor([1.0, -1.0, -2.0, -2.0, 3.0, -3.0]))
    assert_equal(anything, torch.tensor([True, False]))
    assert_equal(total, torch.tensor([2.0, -6.0]))
    assert count.item() == 2


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_failed_call_leaves_no_gradients(tier, eager, twins, assert_equal, assert_same_state):
    mine, theirs = twins(Network)
    step = training(mine, tier=tier, gradient_accumulation=2, nonfinite_loss="raise")
    reference = eager(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9), gradient_accumulation=2)
    bad = torch.randn(4, 3)
    bad[3] = float("nan")
    with pytest.raises(NonFiniteLossError):
        step(bad)
    with torch.no_grad():
        theirs(bad[:2])
    reference.buffers[0] = [buffer.clone() for buffer in theirs.buffers()]
    for _ in range(2):
        batch = torch.randn(4, 3)
        assert_equal(step(batch), reference(batch))
    assert_same_state(mine, theirs)


def test_user_errors_pass_through_the_eager_tier_unchanged():
    class Raising(Network):
        def forward(self, x):
            if x.sum() > 0:
                raise self.error
            return super().forward(x)

    module = Raising()
    step = training(module, tier="eager")
    for error in (ValueError("mine"), RuntimeError("mine"), KeyboardInterrupt()):
        module.error = error
        with pytest.raises(type(error)) as caught:
            step(torch.ones(2, 3))
        assert caught.value is error
    step(-torch.ones(2, 3))
    assert step.record.updates == 1
