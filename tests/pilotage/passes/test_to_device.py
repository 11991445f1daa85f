from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.passes.to_device import to_device
from pilotage.program.program import Action

CPU, ELSEWHERE = torch.device("cpu"), torch.device("meta")


class Net(nn.Module):
    """Makes tensors in forward and has a constant that is not a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.shift = torch.arange(4.0)

    def forward(self, x, target):
        hidden = self.layer(x) + self.shift + torch.arange(4.0, device=x.device)
        return functional.mse_loss(functional.dropout(hidden) * torch.ones(4), target)


def program_of(module):
    step = pilotage.training(
        module, torch.optim.SGD(module.parameters(), lr=0.1), replicas=2, backend="cpu", tier="graph", seed=1
    )
    step.compile(torch.randn(6, 4), torch.randn(6, 4))
    return step._executor.session.captured, step._executor.session.attached


def test_a_moved_program_uses_only_the_other_device():
    program, state = program_of(Net())
    there = to_device(program, CPU, ELSEWHERE)
    for action, computation in there.computations.items():
        arguments = state.arguments(computation.sections, 0, whole=computation.whole)
        batch = [torch.empty(3, 4), torch.empty(3, 4)] if action is Action.ACCUMULATE else []
        outputs = computation.graph(*(tensor.to(ELSEWHERE) for tensor in [*arguments, *batch]))
        assert all(output.device == ELSEWHERE for output in outputs)


def test_the_original_program_is_unchanged():
    program, _ = program_of(Net())
    before = [graph.graph.python_code("self").src for graph in (c.graph for c in program.computations.values())]
    to_device(program, CPU, ELSEWHERE)
    assert before == [graph.graph.python_code("self").src for graph in (c.graph for c in program.computations.values())]
    assert to_device(program, CPU, CPU) is program
