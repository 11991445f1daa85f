"""A program that differs from eager PyTorch is refused in every process, by the name of the module."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import MismatchError
from pilotage.events import Checked

pytestmark = pytest.mark.slow

# By path, since this file is loaded on its own in processes without pytest.
Staged = runpy.run_path(str(Path(__file__).parents[1] / "staged.py"))["Staged"]


class Activated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.activation = nn.ReLU()
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.activation(self.first(x))).square().mean()


def capture_wrongly(operation, by) -> None:
    """From now on, captured graphs compute something else."""
    from pilotage.capture import capture as capturing

    trace = capturing.trace

    def wrongly(*args, **kwargs):
        traced = trace(*args, **kwargs)
        for node in traced.graph.graph.nodes:
            if node.target is operation:
                node.target = by
        traced.graph.recompile()
        return traced

    capturing.trace = wrongly


def message_of_instance() -> str:
    torch.manual_seed(1)
    capture_wrongly(torch.ops.aten.relu.default, torch.ops.aten.abs.default)
    module = Activated()
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), distributed=True)
    with pytest.raises(MismatchError) as raised:
        step(torch.randn(6, 4))
    return str(raised.value)


def message_of_stage() -> str:
    torch.manual_seed(1)
    capture_wrongly(torch.ops.aten.tanh.default, torch.ops.aten.sin.default)
    module = Staged(2)
    step = pilotage.training(
        module,
        torch.optim.SGD(module.parameters(), lr=0.1),
        gradient_accumulation=4,
        distributed=True,
        broadcast_buffers=False,
    )
    with pytest.raises(MismatchError) as raised:
        step(torch.randn(8, 6), torch.randint(4, (8,)))
    return str(raised.value)


def test_instances_name_the_module(world):
    for message in world(message_of_instance, 2):
        assert "The first module whose output differs is activation (ReLU), called at " in message


def test_stages_in_processes_name_the_module(world):
    for message in world(message_of_stage, 1, stages=2):
        assert "The first module whose output differs is middle.1 (Tanh), called at " in message


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


def checks_of_unseeded_process(optimizer) -> list[bool | None]:
    """Every process draws weights and inputs of its own, as in a script without a seed."""
    torch.seed()
    module, checks = Staged(2), []
    step = pilotage.training(
        module,
        OPTIMIZERS[optimizer](module.parameters()),
        gradient_accumulation=4,
        distributed=True,
        check=1,
        listeners=[lambda event: checks.append(event.agrees) if isinstance(event, Checked) else None],
    )
    for _ in range(2):
        step(torch.randn(8, 6), torch.randint(4, (8,)))
    return checks


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_processes_of_several_pipelines_that_draw_their_own_weights_and_inputs_agree(world, optimizer):
    assert world(checks_of_unseeded_process, 2, stages=2, optimizer=optimizer) == [[True, True]] * 4
