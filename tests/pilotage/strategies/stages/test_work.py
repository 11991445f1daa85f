"""One stage at work: forward and backward of micro-batches, what it keeps, and what it remembers of a failure."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.state import DeviceState
from pilotage.options.batching import Batching
from pilotage.passes.stages_on_cards import cut_for_cards
from pilotage.program.program import Action
from pilotage.program.specification import TensorSpec
from pilotage.strategies.stages.work import GraphFailure, StageModule, StageWork

CPU = torch.device("cpu")
BATCHING = Batching(gradient_accumulation=2)


class Stages:
    """The stages of a module, their state and the steps of one round."""

    def __init__(self, programs, module, *, trains=True):
        program = programs.captured(module, BATCHING, trains=trains, gradients_apart=trains)
        steps = programs.schedule_of(program, BATCHING).steps
        self.steps = [step for step in steps if step.micro_batch is not None]
        inputs = programs.batch(BATCHING)
        self.batches = list(zip(*(tensor.split(programs.SAMPLES) for tensor in inputs), strict=True))
        self.cuts = cut_for_cards(program, [CPU, CPU])
        computation = next(iter(self.cuts[0].program.computations.values()))
        self.works = [StageWork(cut.program, cut.graphs, computation.sections, CPU) for cut in self.cuts]
        self.states = [DeviceState(cut.program.layout, program.plan, CPU, 1, trains) for cut in self.cuts]
        weights, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        for state in self.states:
            state.load_weights(weights, buffers)

    def begin(self):
        for work, state in zip(self.works, self.states, strict=True):
            work.begin(state, RandomStreams(CPU, [1]), self.steps, self.batches)

    def forward(self, number):
        """Pass a micro-batch through both stages."""
        first, last = self.works
        return last.forward(number, first.forward(number, torch.empty(first.sizes[0])))

    def gradients(self):
        return {name: pool.clone() for state in self.states for name, pool in state.pools.items()}


@pytest.fixture
def stages(programs):
    return Stages(programs, programs.network())


def test_both_stages_compute_what_the_module_computes(stages, programs):
    stages.begin()
    for number, (x, target) in enumerate(stages.batches):
        stages.forward(number)
        found = {position: value for work in stages.works for position, value in work.outputs[number].items()}
        output, loss = programs.network()(x, target)
        torch.testing.assert_close(found[0], output.detach())
        torch.testing.assert_close(found[1], loss.detach())


def test_backward_pools_the_gradients_of_all_micro_batches(stages, programs):
    stages.begin()
    first, last = stages.works
    for number in range(len(stages.batches)):
        sent = stages.forward(number)
        first.backward(number, last.backward(number, torch.zeros_like(sent)))
    module = programs.network()
    for x, target in stages.batches:
        module(x, target)[1].backward()
    # What is not divided in the stages is divided at the update.
    found = {name: pool / stages.cuts[0].divisor for name, pool in stages.gradients().items()}
    mean = {name: parameter.grad / len(stages.batches) for name, parameter in module.named_parameters()}
    torch.testing.assert_close(found, mean)


def test_micro_batches_may_come_back_in_any_order(stages):
    stages.begin()
    first, last = stages.works
    sent = [stages.forward(number) for number in range(2)]
    for number in (0, 1):
        first.backward(number, last.backward(number, torch.zeros_like(sent[number])))
    in_order = stages.gradients()
    for state in stages.states:
        state.forget_gradients()
    stages.begin()
    sent = [stages.forward(number) for number in range(2)]
    for number in (1, 0):
        first.backward(number, last.backward(number, torch.zeros_like(sent[number])))
    torch.testing.assert_close(stages.gradients(), in_order)


def test_neighbours_agree_on_what_they_exchange(stages):
    first, last = stages.works
    assert first.crossings[1] == last.crossings[0]
    assert first.sizes[1] == last.sizes[0]
    assert first.trains
    assert last.trains


def test_an_output_does_not_share_memory_with_what_was_received(programs):
    class PassesOn(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 5), nn.Linear(5, 2)

        def forward(self, x, target):
            pilotage.enter_stage(0)
            hidden = self.first(x)
            pilotage.enter_stage(1)
            return hidden.view(-1), functional.mse_loss(self.last(hidden), target)

    stages = Stages(programs, PassesOn(), trains=False)
    stages.begin()
    first, last = stages.works
    carrier = first.forward(0, torch.empty(first.sizes[0]))
    last.forward(0, carrier)
    outputs = {**first.outputs[0], **last.outputs[0]}
    before = outputs[0].clone()
    carrier.zero_()
    torch.testing.assert_close(outputs[0], before, rtol=0, atol=0)


def failing(error):
    def fail(*arguments):
        raise error

    return fail


@pytest.mark.parametrize("error", [RuntimeError("out of luck"), MemoryError(), torch.OutOfMemoryError("no memory")])
def test_a_graph_that_fails_is_named_with_its_micro_batch(stages, monkeypatch, error):
    stages.begin()
    stages.forward(0)
    work = stages.works[0]
    monkeypatch.setattr(work._forward, "_run", failing(error))
    with pytest.raises(type(error)):
        work.forward(1, torch.empty(work.sizes[0]))
    assert isinstance(work.failure, GraphFailure)
    assert (work.failure.number, work.failure.error) == (1, error)
    assert work.failure.computation.graph is stages.cuts[0].graphs.forward.graph


def test_the_next_round_forgets_the_failure_and_what_was_kept(stages, monkeypatch):
    work = stages.works[0]
    stages.begin()
    stages.forward(0)
    monkeypatch.setattr(work._forward, "_run", failing(RuntimeError("out of luck")))
    with pytest.raises(RuntimeError, match="out of luck"):
        work.forward(1, torch.empty(work.sizes[0]))
    assert work.failure is not None
    stages.begin()
    assert work.failure is None
    assert work.outputs == [{}, {}]
    with pytest.raises(KeyError):
        work.backward(0, torch.zeros(work.sizes[1]))


def test_an_error_that_no_graph_raised_is_not_taken_for_one(stages, monkeypatch):
    stages.begin()
    work = stages.works[0]
    monkeypatch.setattr(work._forward, "_run", failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        work.forward(0, torch.empty(work.sizes[0]))
    assert work.failure is None


def test_autograd_reaches_the_captured_backward_of_a_stage(stages):
    stages.begin()
    first, last = stages.works
    sent = [StageModule(first)(torch.empty(first.sizes[0]))]
    received = sent[0].detach().requires_grad_()
    StageModule(last)(received).sum().backward()
    sent[0].backward(received.grad)
    expected = stages.gradients()
    for state in stages.states:
        state.forget_gradients()
    stages.begin()
    carrier = stages.forward(0)
    first.backward(0, last.backward(0, torch.ones_like(carrier)))
    torch.testing.assert_close(stages.gradients(), expected)
    assert all(bool(gradient.any()) for gradient in expected.values())


def test_inference_keeps_nothing_for_a_backward(programs):
    stages = Stages(programs, programs.network(), trains=False)
    stages.begin()
    stages.forward(0)
    assert not any(work.trains or work._kept for work in stages.works)
    first = stages.works[0]
    assert first.take_number() == 0
    assert first.take_number() == 1


def test_a_sample_for_a_compiler_is_what_one_micro_batch_took(stages, monkeypatch):
    arrived = []
    for work in stages.works:
        for half in (work._forward, work._backward):
            run = half._run
            monkeypatch.setattr(
                half, "_run", lambda *given, run=run: arrived.append([each.clone() for each in given]) or run(*given)
            )
    stages.begin()
    first, last = stages.works
    assert first.take_sample() == {}
    first.keep_sample()
    sent = [stages.forward(number) for number in range(2)]
    assert first.take_sample() == {}, "backward has not run yet"
    for number in range(2):
        first.backward(number, last.backward(number, torch.zeros_like(sent[number])))
    sample = first.take_sample()
    for action, given in ((Action.FORWARD, arrived[0]), (Action.BACKWARD, arrived[5])):
        torch.testing.assert_close(list(sample[action]), given[-len(sample[action]) :], rtol=0, atol=0)
    made_up = first.made_up_sample(stages.batches[0])
    for action, tensors in sample.items():
        assert [TensorSpec.of(each).dense for each in made_up[action]] == [
            TensorSpec.of(each).dense for each in tensors
        ]
    assert first.take_sample() == {}
    assert last.take_sample() == {}


def test_made_up_samples_change_nothing(stages):
    before = [tensor.clone() for state in stages.states for tensor in state.everything()]
    random = torch.random.get_rng_state()
    for work in stages.works:
        work.made_up_sample(stages.batches[0])
    torch.testing.assert_close([tensor for state in stages.states for tensor in state.everything()], before)
    assert torch.equal(torch.random.get_rng_state(), random)


def test_recurrent_stages_keep_what_their_kernels_need_for_backward(programs):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.LSTM(4, 5), nn.Linear(5, 2)

        def forward(self, x, target):
            pilotage.enter_stage(0)
            hidden, _ = self.first(x.unsqueeze(0))
            pilotage.enter_stage(1)
            output = self.last(hidden.squeeze(0))
            return output, functional.mse_loss(output, target)

    torch.manual_seed(0)
    module = Recurrent()
    stages = Stages(programs, module)
    stages.begin()
    first, last = stages.works
    # As autograd runs the forward of a stage in a pipeline of processes.
    with torch.no_grad():
        sent = stages.forward(0)
    first.backward(0, last.backward(0, torch.zeros_like(sent)))
    module(*stages.batches[0])[1].backward()
    found = {name: pool / stages.cuts[0].divisor for name, pool in stages.gradients().items()}
    expected = {name: each.grad / len(stages.batches) for name, each in module.named_parameters()}
    torch.testing.assert_close(found, expected)


def test_other_functions_are_used_until_the_graphs_are_again(stages):
    stages.begin()
    called = []
    work = stages.works[0]
    graph = work._forward._run
    work.use({Action.FORWARD: lambda *given: called.append("code") or graph(*given)})
    stages.forward(0)
    work.use({})
    stages.forward(1)
    assert called == ["code"]
