"""A schedule as CUDA graphs: what can be recorded, how it is divided, and that replays equal the walk."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.fx import Graph, GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

import pilotage
from pilotage.distributed.peers import Peers, leave
from pilotage.distributed.world import World
from pilotage.door import wrapping
from pilotage.execution import cuda_graph
from pilotage.execution.cuda_graph import CudaGraphExecutable, can_be_recorded, nothing_is_done, trying_algorithms
from pilotage.execution.state import WEIGHTS, CardExchange, DeviceState
from pilotage.options.batching import Batching
from pilotage.options.choices import OutputMode
from pilotage.program.layout import StateLayout
from pilotage.program.program import Action, Computation
from pilotage.program.schedule import make_schedule

CPU = torch.device("cpu")
ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")


def computation(function, *inputs):
    return Computation(sections=(), graph=make_fx(function)(*inputs))


def test_a_graph_of_plain_operations_can_be_recorded():
    assert can_be_recorded(computation(lambda x: (x @ x).relu(), torch.ones(2, 2)), CPU)


def test_python_of_the_eager_tier_cannot_be_recorded():
    assert not can_be_recorded(Computation(sections=()), CPU)


def test_an_operation_that_needs_the_host_cannot_be_recorded():
    library = torch.library.Library("pilotage_tests", "DEF")
    library.define("on_the_host(Tensor x) -> Tensor", tags=(torch.Tag.cudagraph_unsafe,))
    graph = Graph()
    graph.output([graph.call_function(torch.ops.pilotage_tests.on_the_host.default, (graph.placeholder("x"),))])
    assert not can_be_recorded(Computation(sections=(), graph=GraphModule(nn.Module(), graph)), CPU)


def test_a_tensor_that_is_made_on_another_device_cannot_be_recorded():
    made = computation(lambda x: x + torch.zeros(2, device="cpu"), torch.ones(2))
    assert can_be_recorded(made, CPU)
    assert not can_be_recorded(made, torch.device("cuda", 0))


def schedule(iterations):
    return make_schedule(Batching(device_iterations=iterations), trains=False, mode=OutputMode.ALL)


@given(st.integers(1, 24), st.integers(0, 20))
def test_a_call_is_divided_into_a_few_equal_parts_worth_a_copy_each(iterations, size):
    inputs = [torch.empty(size * cuda_graph._WORTH_A_PART // 2, dtype=torch.uint8)]
    parts = cuda_graph._parts(schedule(iterations), inputs)
    assert 1 <= parts <= cuda_graph._PARTS
    assert iterations % parts == 0
    assert parts == 1 or parts * cuda_graph._WORTH_A_PART <= inputs[0].nbytes
    lengths = {len(steps) for steps in schedule(iterations).in_parts(parts)}
    assert lengths == {iterations // parts}


def test_algorithms_are_tried_unless_the_same_ones_are_wanted(monkeypatch):
    cudnn = torch.backends.cudnn
    # torch's own test tools, which other tests use, forbid it for the whole process.
    settings = torch.backends.flags_frozen.__globals__
    monkeypatch.setitem(settings, "__allow_nonbracketed_mutation_flag", True)
    for deterministic, benchmark, expected in ((False, False, True), (True, False, False), (True, True, True)):
        monkeypatch.setattr(cudnn, "deterministic", deterministic)
        monkeypatch.setattr(cudnn, "benchmark", benchmark)
        with trying_algorithms():
            assert cudnn.benchmark is expected
        assert cudnn.benchmark is benchmark


def test_recording_an_update_leaves_the_state_whole():
    state = DeviceState(StateLayout(parameters={}, buffers={}), None, CPU, 1, False)

    def interrupted():
        with nothing_is_done(state):
            state.torn = state.all_parts
            assert state.torn == {WEIGHTS}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not state.torn


class Network(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.layer, self.norm, self.dropout = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(dropout)

    def forward(self, x):
        output = self.dropout(self.norm(self.layer(x)))
        return output, functional.mse_loss(output, torch.zeros_like(output))


def step_on(module, backend, **options):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    return pilotage.training(module, optimizer, backend=backend, tier="graph", outputs="all", **options)


@ON_CUDA
@pytest.mark.parametrize(
    "options", [{}, {"device_iterations": 4}, {"device_iterations": 2, "gradient_accumulation": 2}]
)
def test_the_first_recorded_and_replayed_calls_equal_eager(options, twins):
    mine, theirs = twins(Network)
    step, reference = step_on(mine, "cuda", **options), step_on(theirs, "cpu", **options)
    for _ in range(4):
        batch = torch.randn(16, 3)
        torch.testing.assert_close(step(batch), reference(batch), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(mine.state_dict()), dict(theirs.state_dict()), rtol=1e-4, atol=1e-5)
    executable = step._executor.session.strategy.executable
    assert isinstance(executable, CudaGraphExecutable)
    assert executable._recorded is not None


@ON_CUDA
def test_every_replay_draws_new_numbers_and_a_seed_repeats_them(twins):
    def outputs(module):
        step = step_on(module, "cuda", seed=3)
        return [step(torch.arange(24.0).reshape(8, 3))[0] for _ in range(4)]

    mine, theirs = twins(lambda: Network(0.5))
    first, second = outputs(mine), outputs(theirs)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(first[2] == 0, first[3] == 0)


@ON_CUDA
def test_a_new_state_is_recorded_again(twins):
    mine, theirs = twins(Network)
    step, reference = step_on(mine, "cuda"), step_on(theirs, "cpu")
    for number in range(6):
        if number == 3:
            step.detach()
        batch = torch.randn(8, 3)
        torch.testing.assert_close(step(batch), reference(batch), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("iterations", "accumulation"), [(1, 1), (1, 3), (3, 2)])
def test_each_update_of_instances_begins_a_graph(iterations, accumulation):
    batching = Batching(device_iterations=iterations, gradient_accumulation=accumulation, instances=2)
    whole = make_schedule(batching, trains=True, mode=OutputMode.ALL, pools=True)
    first, *others = cuda_graph.between_exchanges(whole)
    assert [step for group in (first, *others) for step in group] == list(whole.steps)
    assert [step.action for step in first] == [Action.ACCUMULATE] * accumulation
    assert len(others) == iterations
    assert all([step.action for step in group].index(Action.UPDATE) == 0 for group in others)
    assert all([step.action for step in group].count(Action.UPDATE) == 1 for group in others)


class FakeGraph:
    """Stands for a CUDA graph on a machine without a card."""

    def __init__(self, events):
        self.events = events

    def pool(self):
        return None

    def replay(self):
        self.events.append("graph")


class FakeStaging:
    def __init__(self, *_):
        pass

    def begin(self, inputs):
        return inputs

    def bring(self, pieces, part):
        pass

    def fetch(self, outputs):
        return outputs


class FakeWalk:
    def __init__(self, state, events):
        self.state, self.events = state, events

    def run(self, steps):
        for step in steps:
            if step.action is Action.UPDATE:
                self.state.exchange_gradients()
            self.events.append(step.action.value)

    def outputs(self):
        return []


@pytest.fixture
def events(monkeypatch):
    """Not on a card: what CUDA records is replaced, and only the order of events is looked at."""
    found = []
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: FakeGraph(found))
    monkeypatch.setattr(torch.cuda, "graph", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch.cuda, "Event", lambda: SimpleNamespace(record=lambda: None, query=lambda: True))
    monkeypatch.setattr(cuda_graph, "InputStaging", FakeStaging)
    monkeypatch.setattr(cuda_graph, "OutputStaging", FakeStaging)
    return found


def recorded_for_instances(events, wait=None):
    state = DeviceState(StateLayout(parameters={}, buffers={}), None, CPU, 1, False)
    state.exchange = lambda _: lambda: events.append("exchange")
    batching = Batching(device_iterations=2, gradient_accumulation=2, instances=2)
    whole = make_schedule(batching, trains=True, mode=OutputMode.ALL, pools=True)
    walked = SimpleNamespace(begin=lambda *_: FakeWalk(state, events))
    return cuda_graph._Recording(walked, whole, state, [], None, wait), state


def test_instances_exchange_gradients_between_graphs_and_not_while_these_are_recorded(events):
    recording, state = recorded_for_instances(events)
    assert "exchange" not in events
    assert state.exchange is not None
    events.clear()
    recording.replay([], state)
    assert events == ["graph", "exchange", "graph", "exchange", "graph"]


def test_an_exchange_by_the_card_itself_is_recorded_in_one_graph_and_the_call_waits_for_it(events):
    waited = []
    recording, state = recorded_for_instances(events, lambda is_done: waited.append(is_done()))
    update = ["accumulate", "accumulate", "exchange", "update"]
    assert events == 2 * update
    events.clear()
    recording.replay([], state)
    assert events == ["graph"]
    assert waited == [True]


def test_only_an_exchange_that_the_card_makes_itself_can_be_recorded():
    state = DeviceState(StateLayout(parameters={}, buffers={}), None, CPU, 1, False)
    calls = []
    on_card = CardExchange(lambda _: True, lambda is_done, seconds: calls.append((is_done(), seconds)))
    assert cuda_graph._waiting(state, 3.0) is None
    state.exchange = lambda _: lambda: None
    assert cuda_graph._waiting(state, 3.0) is None
    state.card_exchange = CardExchange(lambda _: False, on_card.wait)
    assert cuda_graph._waiting(state, 3.0) is None
    state.card_exchange = on_card
    wait = cuda_graph._waiting(state, 3.0)
    assert wait is not None
    wait(lambda: True)
    assert calls == [(True, 3.0)]


@ON_CUDA
@pytest.mark.parametrize("tier", ["graph", "compiled"])
def test_a_world_of_one_exchanges_by_nccl_in_its_graphs_and_reaches_the_same_weights(
    monkeypatch, tmp_path, twins, tier
):
    options = {"gradient_accumulation": 2, "device_iterations": 2, "outputs": "all", "cache_directory": tmp_path}

    def step_of(module):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        return pilotage.training(module, optimizer, backend="cuda", tier=tier, distributed=True, **options)

    mine, theirs = twins(Network)
    alone = step_of(theirs)
    monkeypatch.setattr(wrapping, "peers_here", lambda: Peers(world=World(one_host=True)))
    step = step_of(mine)
    try:
        for _ in range(4):
            batch = torch.randn(16, 3)
            torch.testing.assert_close(step(batch), alone(batch), rtol=0, atol=0)
        torch.testing.assert_close(dict(mine.state_dict()), dict(theirs.state_dict()), rtol=0, atol=0)
        recorded = step._executor.session.strategy.executable._recorded
        assert recorded._wait is not None
        assert not recorded._exchanges
    finally:
        leave()
