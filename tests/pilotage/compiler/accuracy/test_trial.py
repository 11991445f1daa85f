"""A program with random weights, run like one host call."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.fx import symbolic_trace

from pilotage.compiler.accuracy.trial import Trial
from pilotage.options.batching import Batching
from pilotage.passes.stage_program import cut_program
from pilotage.passes.stage_to_compile import compilable_stage
from pilotage.program.program import Action
from pilotage.strategies.stages.work import StageWork

programs = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "strategies" / "programs.py")))


def job_of_a_stage():
    batching = Batching(gradient_accumulation=2)
    program = programs.captured(programs.network(), batching, gradients_apart=True)
    cut = cut_program(program, 0, 2, programs.CPU)
    sections = next(iter(cut.program.computations.values())).sections
    batch = [tensor[: programs.SAMPLES] for tensor in programs.batch(batching)]
    samples = StageWork(cut.program, cut.graphs, sections, programs.CPU).made_up_sample(batch)
    stage = compilable_stage(cut, sections)
    runs = {Action.FORWARD: 2, Action.BACKWARD: 1, Action.UPDATE: 1}
    return SimpleNamespace(program=stage.program, device=programs.CPU, inputs=samples, buffers={}, runs=runs)


def test_the_update_of_a_stage_is_tried_with_gradients():
    job = job_of_a_stage()
    trial = Trial(job, job.program)
    before = [tensor.clone() for tensor in trial.state.parameters.values()]
    outputs = trial.run()
    assert all(not torch.equal(*pair) for pair in zip(before, trial.state.parameters.values(), strict=True))
    assert len(outputs) == 2 * len(trial.results(Action.FORWARD)) + len(trial.results(Action.BACKWARD))


def test_copies_of_a_trial_compute_the_same():
    job = job_of_a_stage()
    trial = Trial(job, job.program)
    first = [tensor.clone() for tensor in (*trial.run(), *trial.state_tensors())]
    again = trial.fresh_copy()
    torch.testing.assert_close([*again.run(), *again.state_tensors()], first, rtol=0, atol=0)


def test_runs_do_not_see_what_an_earlier_run_wrote_to_its_inputs():
    job = job_of_a_stage()
    graph = symbolic_trace(Overwriting())
    for node in graph.graph.nodes:
        node.target = torch.ops.aten.mul_.Tensor if node.op == "call_function" else node.target
    computation = replace(job.program.computations[Action.FORWARD], sections=(), graph=graph)
    program = replace(job.program, computations={Action.FORWARD: computation})
    given = torch.ones(3)
    job = SimpleNamespace(**{**vars(job), "inputs": {Action.FORWARD: [given]}, "runs": {Action.FORWARD: 3}})
    found = Trial(job, program).run()
    torch.testing.assert_close(found, [torch.full((3,), 2.0)] * 3)
    assert torch.equal(given, torch.ones(3))


class Overwriting(torch.nn.Module):
    def forward(self, x):
        return [torch.mul(x, 2)]
