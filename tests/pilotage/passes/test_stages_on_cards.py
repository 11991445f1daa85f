from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.capture import Request, capture
from pilotage.capture.model import modes_of
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.optim.reading import read_optimizer
from pilotage.options.batching import Batching
from pilotage.passes.stages_on_cards import cut_for_cards, stages_of
from pilotage.program.program import Action
from pilotage.program.schedule import Step
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten
from pilotage.strategies.stages.update import StageUpdate
from pilotage.strategies.stages.work import StageWork

CPU, ELSEWHERE = torch.device("cpu"), torch.device("meta")
"""Two devices that no operation can mix."""


class Staged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 4)
        self.shift = torch.arange(6.0)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = self.first(x).relu()
        pilotage.enter_stage(1)
        output = self.last(hidden + self.shift + torch.arange(6.0, device=x.device))
        return output, functional.mse_loss(output, target)


@pytest.fixture
def program():
    module, inputs = Staged(), (torch.randn(3, 4), torch.randn(3, 4))
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    plan = read_optimizer(torch.optim.Adam(module.parameters(), lr=0.1), names)
    return capture(
        Request(
            module=module,
            arguments=flatten((inputs, {}), {})[1],
            inputs=[TensorSpec.of(tensor) for tensor in inputs],
            modes=modes_of(module),
            plan=plan,
            batching=Batching(),
            separate_gradients=True,
        )
    )


def test_stages_are_counted(program):
    assert stages_of(program) == 2


def test_each_stage_uses_only_its_own_card(program):
    cuts = cut_for_cards(program, [CPU, ELSEWHERE])
    sections = next(iter(program.computations.values())).sections
    steps = [Step(action=Action.ACCUMULATE, iteration=0, micro_batch=0)]
    works, states = [], []
    for cut, card in zip(cuts, (CPU, ELSEWHERE), strict=True):
        states.append(DeviceState(cut.program.layout, program.plan, card, 1, True))
        works.append(StageWork(cut.program, cut.graphs, sections, card))
        works[-1].begin(states[-1], RandomStreams(CPU), steps, [[torch.zeros(3, 4, device=card)] * 2])
    sent = works[0].forward(0, torch.empty(1))
    works[1].forward(0, sent.to(ELSEWHERE))
    back = works[1].backward(0, torch.empty(1, device=ELSEWHERE))
    assert back.device == ELSEWHERE
    works[0].backward(0, torch.zeros(back.shape))
    for cut, state in zip(cuts, states, strict=True):
        StageUpdate(cut).run(state, RandomStreams(CPU), 0)
    assert {output.device for output in works[1].outputs[0].values()} == {ELSEWHERE}
