"""A pipeline equals eager PyTorch over both transports: cards of one process, and processes of one instance."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from pilotage.distributed.pipeline_group import pipeline_group_here
from pilotage.errors import AttachmentError
from pilotage.execution.walk import StepFailure
from pilotage.options.batching import Batching
from pilotage.options.choices import PipelineOrder
from pilotage.passes.stage_program import cut_program
from pilotage.passes.stages_on_cards import cut_for_cards
from pilotage.program.graphs.straight_line import straight_line
from pilotage.program.program import Action
from pilotage.strategies.stages.in_processes import ProcessTransport
from pilotage.strategies.stages.on_cards import CardTransport, order_on_cards
from pilotage.strategies.stages.strategy import Pipeline, micro_batches_per_round

# By path: this file is also loaded in processes without pytest.
programs = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "programs.py")))
CPU = programs.CPU
BATCHING = Batching(gradient_accumulation=2, device_iterations=2)


def on_cards(module, batching=BATCHING, order=None, **settings):
    """Both stages on cards of this process."""
    program = programs.captured(module, batching, gradients_apart=True)
    schedule = programs.schedule_of(program, batching)
    cuts, together = cut_for_cards(program, [CPU, CPU]), micro_batches_per_round(schedule)
    chosen = order_on_cards(order, cuts, together)
    transport = CardTransport([CPU, CPU], chosen, together, trains=True)
    return Pipeline(program, schedule, cuts, [CPU, CPU], transport, programs.setup(batching, **settings))


def in_process(module, pipeline_group, order):
    """One stage; other processes have the others."""
    program = programs.captured(module, BATCHING, gradients_apart=True)
    schedule = programs.schedule_of(program, BATCHING)
    cut = cut_program(program, pipeline_group.stage, pipeline_group.stages, CPU)
    transport = ProcessTransport(pipeline_group, cut, program.layout, CPU, order, micro_batches_per_round(schedule))
    return Pipeline(cut.program, schedule, [cut], [CPU], transport, programs.setup(BATCHING))


def train_a_stage(orders):
    """Run in each process of an instance."""
    found = []
    for order in orders:
        module = programs.network()
        strategy = in_process(module, pipeline_group_here(), PipelineOrder(order))
        outputs, weights = programs.trained(strategy, module, BATCHING)
        found.append((outputs, weights, sorted(strategy.state.parameters)))
    return found


@pytest.mark.parametrize("order", [None, *PipelineOrder])
def test_stages_on_cards_equal_eager(order):
    module = programs.network()
    strategy = on_cards(module, order=order)
    found = programs.trained(strategy, module, BATCHING)
    torch.testing.assert_close(found, programs.trained_by_eager(programs.network(), BATCHING))
    assert [sorted(part.parameters) for part in strategy.state.parts] == [
        ["first.bias", "first.weight"],
        ["last.bias", "last.weight"],
    ]


@pytest.mark.slow
def test_stages_in_processes_equal_eager(world):
    orders = [order.value for order in PipelineOrder]
    expected_outputs, expected = programs.trained_by_eager(programs.network(), BATCHING)
    parts = [["first.bias", "first.weight"], ["last.bias", "last.weight"]]
    for stage, runs in enumerate(world(train_a_stage, 1, stages=2, orders=orders)):
        for outputs, weights, own in runs:
            torch.testing.assert_close(outputs, expected_outputs)
            torch.testing.assert_close(weights, expected)
            assert own == parts[stage]


def test_the_error_of_a_graph_names_its_micro_batch_and_the_next_call_works(monkeypatch):
    module = programs.network()
    strategy = programs.attached(on_cards(module), module)
    half = strategy._works[1]._forward
    whole, calls = half._run, []

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise RuntimeError("out of luck")
        return whole(*arguments)

    monkeypatch.setattr(half, "_run", fail)
    with pytest.raises(StepFailure) as raised:
        strategy.run(programs.batch(BATCHING))
    assert str(raised.value.__cause__) == "out of luck"
    assert raised.value.step.micro_batch == 2
    assert strategy.state.updates_of_call == 1
    assert not any(part.flat_gradients.any() for part in strategy.state.parts)
    strategy.run(programs.batch(BATCHING))
    assert strategy.state.updates_of_call == 2


def counted(stage, called):
    """The graphs of a stage as code that says when it is called."""

    def code(device):
        def make(action, graph):
            run = straight_line(graph)
            return lambda *given: (called.append((stage.name, action.value)), run(*given))[1]

        return {action: make(action, part.graph) for action, part in stage.program.computations.items()}

    return code


@pytest.mark.parametrize("which", [(0, 1), (1,)])
def test_each_stage_on_cards_runs_code_of_its_own_or_its_graph(which):
    module, called = programs.network(), []
    strategy = on_cards(module)
    both = strategy.programs_to_compile(strategy.program)
    assert [sorted(each.layout.parameters) for each in both] == [
        ["first.bias", "first.weight"],
        ["last.bias", "last.weight"],
    ]
    stages = [SimpleNamespace(name=number, program=program) for number, program in enumerate(both)]
    strategy.replace(strategy.program, [counted(each, called) if each.name in which else None for each in stages])
    found = programs.trained(strategy, module, BATCHING)
    torch.testing.assert_close(found, programs.trained_by_eager(programs.network(), BATCHING))
    assert {*called} == {(stage, action) for stage in which for action in ("forward", "backward", "update")}
    called.clear()
    strategy.with_schedule(strategy.schedule).run(programs.batch(BATCHING))
    assert {stage for stage, _ in called} == {*which}
    strategy.replace(strategy.program, [None, None])
    called.clear()
    strategy.run(programs.batch(BATCHING))
    assert called == []


def test_samples_for_a_compiler_are_what_a_micro_batch_makes_of_the_weights_of_the_host():
    module = programs.network()
    weights = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    strategy = on_cards(module, host_weights=lambda: weights)
    inputs = [each[: programs.SAMPLES] for each in programs.batch(BATCHING)]
    before, random = {name: each.clone() for name, each in weights.items()}, torch.random.get_rng_state()
    rehearsed = [strategy.inputs_to_compile(stage, inputs) for stage in (0, 1)]
    assert strategy.state is None
    torch.testing.assert_close(weights, before, rtol=0, atol=0)
    assert torch.equal(torch.random.get_rng_state(), random)
    hidden = module.first(inputs[0]).tanh().detach()
    torch.testing.assert_close(list(rehearsed[0][Action.FORWARD]), inputs)
    torch.testing.assert_close(rehearsed[1][Action.FORWARD][-1], hidden)
    programs.attached(strategy, module)
    # Kept from the call after the compiler has asked for them, one stage at a time.
    assert strategy.inputs_to_compile(1, inputs) == {}
    strategy.run(programs.batch(BATCHING))
    for action, sample in strategy.inputs_to_compile(1, inputs).items():
        torch.testing.assert_close(list(sample), list(rehearsed[1][action]))
    assert strategy.inputs_to_compile(0, inputs) == {}


def test_without_state_nothing_runs():
    module = programs.network()
    strategy = on_cards(module)
    for use in (lambda: strategy.run(programs.batch(BATCHING)), strategy.weights):
        with pytest.raises(AttachmentError):
            use()
    programs.attached(strategy, module).detach()
    assert strategy.state is None
