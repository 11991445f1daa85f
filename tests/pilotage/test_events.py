"""The events that a listener receives, in order."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.events import BackendChosen, CompilationProgress, StepsRun, Warned, between_calls


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.count = 0

    def forward(self, x):
        self.count += 1
        return functional.mse_loss(self.layer(x), torch.zeros_like(x))


def heard(**options):
    events = []
    module = Network()
    step = pilotage.training(
        module, torch.optim.SGD(module.parameters(), lr=0.1), listeners=[events.append], backend="cpu", **options
    )
    return step, events


def test_compilation_progress_goes_from_zero_to_one_once():
    step, events = heard()
    step(torch.ones(2, 3))
    step(torch.ones(2, 3))
    progress = [event for event in events if isinstance(event, CompilationProgress)]
    fractions = [event.fraction for event in progress]
    assert fractions == sorted(set(fractions))
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert progress[-1].doing == "done"


def test_listeners_get_the_chosen_device_and_every_call():
    step, events = heard(device_iterations=2, gradient_accumulation=3)
    for _ in range(2):
        step(torch.ones(6, 3))
    (chosen,) = [event for event in events if isinstance(event, BackendChosen)]
    assert (chosen.backend, chosen.device, chosen.tier) == ("cpu", "cpu", "graph")
    runs = [event for event in events if isinstance(event, StepsRun)]
    assert [(run.device, run.tier, run.micro_batches, run.updates) for run in runs] == [("cpu", "graph", 6, 2)] * 2
    assert all(run.seconds > 0 for run in runs)


def test_a_listener_between_calls_hears_everything_but_the_calls():
    everything, some = [], []

    @between_calls
    def listen(event):
        some.append(event)

    module = Network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, listeners=[everything.append, listen], backend="cpu")
    for _ in range(2):
        step(torch.ones(2, 3))
    assert some == [event for event in everything if not isinstance(event, StepsRun)]
    assert len(everything) == len(some) + 2


def test_warnings_are_emitted_at_capture():
    step, events = heard()
    step(torch.ones(2, 3))
    (warning,) = [event for event in events if isinstance(event, Warned)]
    assert "'count'" in warning.message
    kinds = [type(event) for event in events]
    assert kinds.index(BackendChosen) < kinds.index(Warned) < kinds.index(StepsRun)


def test_events_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Warned(message="a").message = "b"
