"""Stages in real processes: what they exchange, and what every process learns of a failure in one of them."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import pilotage
from pilotage.distributed.pipeline_group import pipeline_group_here
from pilotage.errors import DeviceMemoryError, DistributedError
from pilotage.execution.walk import StepFailure
from pilotage.options.batching import Batching
from pilotage.options.choices import PipelineOrder
from pilotage.passes.returned_loss_check import with_returned_loss_check
from pilotage.passes.stage_program import cut_program
from pilotage.strategies.stages.in_processes import ProcessTransport
from pilotage.strategies.stages.strategy import Pipeline, micro_batches_per_round

pytestmark = pytest.mark.slow

# By its path: this file is loaded in processes that know nothing of pytest.
programs = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "programs.py")))
Staged = runpy.run_path(str(Path(__file__).parents[2] / "staged.py"))["Staged"]
CPU = programs.CPU
BATCHING = Batching(gradient_accumulation=2, device_iterations=2)


def pipeline(module, group, **settings):
    program = programs.captured(module, BATCHING, gradients_apart=True)
    schedule = programs.schedule_of(program, BATCHING)
    cut = cut_program(with_returned_loss_check(program), group.stage, group.stages, CPU)
    order, together = PipelineOrder.GPIPE, micro_batches_per_round(schedule)
    transport = ProcessTransport(group, cut, program.layout, CPU, order, together)
    setup = replace(programs.setup(BATCHING), **settings)
    return programs.attached(Pipeline(cut.program, schedule, [cut], [CPU], transport, setup), module)


def exchange():
    """What the transport passes between the stages, apart from micro-batches."""
    group, module = pipeline_group_here(), programs.network()
    strategy = pipeline(module, group)
    strategy.run(programs.batch(BATCHING))
    transport = strategy._transport
    weights = {name: tensor.clone() for name, tensor in strategy.weights().items()}
    return list(transport.local_stages), transport.gather([group.stage + 0.5]), sorted(weights), group.stage


def test_every_process_knows_the_numbers_and_weights_of_all_stages(world):
    for stage, (local, numbers, names, own) in enumerate(world(exchange, 1, stages=2)):
        assert (local, own) == ([stage], stage)
        assert numbers == [0.5, 1.5]
        assert names == ["first.bias", "first.weight", "last.bias", "last.weight", "seen"]


def shared_inputs():
    """Only the first process has the batch; the second passes another one."""
    group, module = pipeline_group_here(), programs.network()
    strategy = pipeline(module, group)
    x, target = programs.batch(BATCHING)
    own = (x, target) if group.stage == 0 else (torch.zeros_like(x), torch.zeros_like(target))
    outputs = strategy.run(own)
    return outputs, bool(group.stage == 0 or not own[1].any())


def test_later_stages_use_the_inputs_of_the_first_and_leave_the_callers_tensors(world):
    (expected,), _ = programs.trained_by_eager(programs.network(), BATCHING, calls=1)
    for outputs, is_untouched in world(shared_inputs, 1, stages=2):
        torch.testing.assert_close(outputs, expected)
        assert is_untouched


def different_shapes():
    group = pipeline_group_here()
    torch.manual_seed(0)
    module = programs.TwoStages()
    if group.stage == 1:
        module.first, module.last = torch.nn.Linear(4, 7), torch.nn.Linear(7, 2)
    try:
        pipeline(module, group).run(programs.batch(BATCHING))
    except DistributedError as error:
        return str(error)
    return None


def test_stages_of_different_models_are_refused(world):
    for message in world(different_shapes, 1, stages=2):
        assert message is not None
        assert message.startswith("What stage 0 sends is not what stage 1 expects.")


def train_on_bad_losses(stops):
    """A batch whose targets are infinite: only the last stage sees the loss."""
    group, module, reported = pipeline_group_here(), programs.network(), []

    def on_failure(failure, error):
        reported.append((failure.is_late, str(error)))
        return True

    strategy = pipeline(module, group, on_failure=on_failure, stops_at_losses=stops)
    before = {name: tensor.clone() for name, tensor in strategy.state.parameters.items()}
    x, target = programs.batch(BATCHING)
    raised = None
    try:
        strategy.run((x, torch.full_like(target, float("inf"))))
    except StepFailure as failure:
        raised = (failure.is_late, str(failure.__cause__))
    unchanged = all(torch.equal(before[name], tensor) for name, tensor in strategy.state.parameters.items())
    return raised, reported, unchanged


def test_a_loss_that_is_not_finite_is_reported_in_every_process(world):
    for raised, reported, _ in world(train_on_bad_losses, 1, stages=2, stops=False):
        assert raised is None
        assert len(reported) == 1
        is_late, message = reported[0]
        assert is_late
        assert "not finite" in message


def test_a_loss_that_is_not_finite_stops_every_process_before_the_update(world):
    for raised, reported, unchanged in world(train_on_bad_losses, 1, stages=2, stops=True):
        is_late, message = raised
        assert is_late
        assert "not finite" in message
        assert reported == []
        assert unchanged


def run_out_of_memory():
    """The second stage fails in its second call."""
    torch.manual_seed(0)
    module = Staged(2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = pilotage.training(module, optimizer, tier="graph", gradient_accumulation=2, distributed=True)
    batch = torch.randn(4, 6), torch.randint(6, (4,))
    step(*batch)
    strategy = step._executor.session.strategy
    (work,) = strategy._works
    if pipeline_group_here().stage == 1:

        def fail(*arguments):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

        work._forward._run = fail
    try:
        step(*batch)
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def test_an_out_of_memory_error_in_a_stage_is_explained_there(instances):
    begun = instances()
    begun.start(run_out_of_memory, 1, stages=2)
    # The first stage waits for an answer that never comes, and is ended with the test.
    begun.processes[1].join(120)
    kind, message = torch.load(begun.answer(1))
    assert kind == DeviceMemoryError.__name__
    assert message.startswith("Out of memory at update 2")
    assert "Tried to allocate 2.00 GiB" in message
    assert "gradient accumulation" in message
