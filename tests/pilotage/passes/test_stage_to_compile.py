"""The stage of a pipeline as a program: divided and joined again it computes the same."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.functions.randomness import undisturbed_generators
from pilotage.execution.state import DeviceState
from pilotage.options.batching import Batching
from pilotage.passes.stage_program import cut_program
from pilotage.passes.stage_to_compile import compilable_stage
from pilotage.program.graphs.rewrites import results_of
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action
from pilotage.strategies.stages.work import StageWork

programs = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "strategies" / "programs.py")))
CPU, BATCHING = programs.CPU, Batching(gradient_accumulation=2)


class Drawing(nn.Module):
    """Its forward draws random numbers, changes a buffer and keeps views of its input and of a weight."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, target):
        pilotage.enter_stage(0)
        self.seen += 1
        hidden = functional.dropout(self.first(x) @ self.first.weight.t().relu(), 0.5) * x.t().reshape(-1)[:4]
        pilotage.enter_stage(1)
        return functional.mse_loss(self.last(hidden), target)


class Cut:
    """One stage of a module, with state and samples."""

    def __init__(self, module, stage, *, trains=True):
        program = programs.captured(module, BATCHING, trains=trains, gradients_apart=trains)
        self.cut = cut_program(program, stage, 2, CPU)
        self.sections = next(iter(self.cut.program.computations.values())).sections
        self.work = StageWork(self.cut.program, self.cut.graphs, self.sections, CPU)
        self.state = DeviceState(self.cut.program.layout, program.plan, CPU, 1, trains)
        self.state.load_weights(dict(module.named_parameters()), dict(module.named_buffers()))
        self.batch = [tensor[: programs.SAMPLES] for tensor in programs.batch(BATCHING)]
        self.stage = compilable_stage(self.cut, self.sections)
        self.samples = self.work.made_up_sample(self.batch)

    def arguments(self, action):
        return [each.clone() for each in (*self.state.arguments(self.sections, 0), *self.samples[action])]


class InPlace(nn.Module):
    """Its stages write to what they receive, return a buffer that they have changed, and an input that they change."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.position = nn.Parameter(torch.randn(4))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x, target):
        pilotage.enter_stage(0)
        steps = self.steps.add_(1)
        hidden = self.first(x)
        hidden.mul_(2).add_(steps)
        pilotage.enter_stage(1)
        hidden += self.position
        hidden = functional.dropout(hidden, 0.5, inplace=True).relu_()
        return hidden, functional.mse_loss(self.last(hidden) * steps, target)


MODULES = (programs.network, Drawing, InPlace)


@pytest.fixture(
    params=[(make, number) for make in MODULES for number in (0, 1)], ids=lambda each: f"{each[0].__name__}-{each[1]}"
)
def stage(request):
    make, number = request.param
    torch.manual_seed(0)
    return Cut(make(), number)


@pytest.mark.parametrize("action", [Action.FORWARD, Action.BACKWARD])
def test_the_parts_of_a_graph_compute_what_the_whole_graph_does(stage, action):
    halves = {Action.FORWARD: stage.cut.graphs.forward, Action.BACKWARD: stage.cut.graphs.backward}
    ours, theirs = stage.arguments(action), stage.arguments(action)
    part = stage.stage.graphs[action]
    code = {action: straight_line(stage.stage.program.computations[action].graph)}
    with undisturbed_generators():
        found = stage.stage.calls(code)[action](*ours)
        drawn = torch.rand(())
    with undisturbed_generators():
        expected = straight_line(halves[action].graph)(*theirs)
        assert torch.equal(drawn, torch.rand(())), "random numbers are drawn once"
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert len(results_of(part.computed)) + len(part.places) == len(expected)


def test_compiled_code_does_not_copy_the_inputs_that_backward_reads():
    stage = Cut(programs.network(), 0)
    part = stage.stage.graphs[Action.FORWARD]
    arguments = stage.arguments(Action.FORWARD)
    results = part.joined(straight_line(part.computed))(*arguments)
    assert any(results[place] is each for place in part.places for each in arguments)


def test_the_program_of_a_stage_has_its_own_parameters_only(stage):
    program = stage.stage.program
    assert set(program.computations) == {Action.FORWARD, Action.BACKWARD, Action.UPDATE}
    assert program.plan is not None
    named = {name for group in program.plan.groups for name in group.parameters}
    assert named == set(program.layout.parameters)
    given = sum(len(samples) for samples in stage.samples.values())
    # The micro-batch, what is received, and what forward keeps for backward.
    assert len(program.inputs) == given


class Fixed(nn.Module):
    """Its first stage has nothing to train."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 2)

    def forward(self, x, target):
        pilotage.enter_stage(0)
        hidden = self.first(x)
        pilotage.enter_stage(1)
        return functional.mse_loss(self.last(hidden), target)


def test_what_a_stage_does_not_compute_is_not_compiled():
    # The update counts, even if it changes no weight.
    assert set(Cut(Fixed(), 0).stage.program.computations) == {Action.FORWARD, Action.UPDATE}
    assert set(Cut(Fixed(), 1).stage.program.computations) == {Action.FORWARD, Action.BACKWARD, Action.UPDATE}


def test_a_stage_that_only_infers_has_a_forward_only():
    stage = Cut(programs.network().eval(), 1, trains=False)
    assert set(stage.stage.program.computations) == {Action.FORWARD}
    assert set(stage.samples) == {Action.FORWARD}
