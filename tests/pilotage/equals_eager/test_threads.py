"""Several threads: each gets the results of a single one, a module is captured once, and training calls take turns."""

from __future__ import annotations

import copy
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
import poptorch
from pilotage.events import CompilationProgress

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def threads_that_alternate():
    """Switch between threads much more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def network(seed=0, width=8, drop=0.0):
    torch.manual_seed(seed)
    hidden = [nn.Linear(6, width), nn.LayerNorm(width), nn.Tanh(), nn.Dropout(drop)]
    return nn.Sequential(*hidden, *(nn.Linear(width, width) for _ in range(4)), nn.Linear(width, 2)).eval()


def inference(module, door="pilotage", tier="graph", cache=None, **options):
    if door == "pilotage":
        return pilotage.inference(module, backend="cpu", tier=tier, cache_directory=cache, **options)
    options = poptorch.Options().runOn("cpu", tier=tier).showCompilationProgressBar(False)
    if cache is not None:
        options.enableExecutableCaching(cache)
    return poptorch.inferenceModel(module, options)


def at_once(*actions):
    """The result of each action, all started at the same moment in separate threads."""
    barrier = threading.Barrier(len(actions))

    def begin(action):
        barrier.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result() for future in [pool.submit(begin, action) for action in actions]]


def assert_intact(module, plain, fake_tensors, assert_same_state):
    assert not fake_tensors([[part._parameters, part._buffers] for part in module.modules()])
    assert {type(each) for each in module.parameters()} == {nn.Parameter}
    assert_same_state(module, plain)


DOORS = pytest.mark.parametrize("door", ["pilotage", "poptorch"])
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


@DOORS
@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_first_calls_of_one_model_capture_once_and_leave_its_weights(
    door, tier, fake_tensors, assert_same_state, assert_equal
):
    for seed in range(6):
        module = network(seed)
        plain = copy.deepcopy(module)
        model = inference(module, door, tier)
        results = at_once(*[lambda model=model: model(X)] * 3)
        assert model._executor.record.compilations == 1
        assert_equal(results, [plain(X).detach()] * 3)
        assert_intact(module, plain, fake_tensors, assert_same_state)
        assert_equal(model(X), plain(X).detach())


@DOORS
def test_first_calls_of_different_models_do_not_disturb_each_other(door, fake_tensors, assert_same_state, assert_equal):
    for seed in range(6):
        modules = [network(seed * 10 + i, width=4 + i) for i in range(3)]
        plain = copy.deepcopy(modules)
        models = [inference(module, door) for module in modules]
        results = at_once(*(lambda model=model: model(X) for model in models))
        assert_equal(results, [each(X).detach() for each in plain])
        for module, each in zip(modules, plain, strict=True):
            assert_intact(module, each, fake_tensors, assert_same_state)


@DOORS
@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_concurrent_calls_return_what_single_calls_return(door, tier, assert_equal):
    module = network()
    model = inference(module, door, tier)
    batches = [torch.randn(4, 6) for _ in range(40)]
    expected = [module(each).detach() for each in batches]
    model(X)
    results = at_once(*(lambda part=part: [model(each) for each in batches[part::2]] for part in (0, 1)))
    assert_equal(results, [expected[0::2], expected[1::2]])


class WithLoss(nn.Module):
    """A regression on ones."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        output = self.network(x)
        return output, functional.mse_loss(output, torch.ones_like(output))


def training(module, door="pilotage", lr=0.05, tier="graph", cache=None):
    if door == "pilotage":
        optimizer = torch.optim.SGD(module.parameters(), lr=lr)
        return pilotage.training(module, optimizer, backend="cpu", tier=tier, cache_directory=cache)
    options = poptorch.Options().runOn("cpu", tier=tier).showCompilationProgressBar(False)
    return poptorch.trainingModel(module, options, poptorch.optim.SGD(module.parameters(), lr=lr))


def states_of_training(module, updates, lr=0.05):
    """The state of a plain twin after each number of updates."""
    plain = copy.deepcopy(module)
    optimizer = torch.optim.SGD(plain.parameters(), lr=lr)
    states = [copy.deepcopy(plain.state_dict())]
    for _ in range(updates):
        optimizer.zero_grad()
        plain(X)[1].backward()
        optimizer.step()
        states.append(copy.deepcopy(plain.state_dict()))
    return states


def same(state, other):
    return all(torch.equal(state[name], other[name]) for name in other)


@DOORS
def test_training_calls_of_several_threads_follow_each_other(door, assert_equal):
    module = WithLoss(network())
    states = states_of_training(module, 180)
    model = training(module, door)
    model(X)
    at_once(*[lambda: [model(X) for _ in range(59)]] * 3)
    assert_equal(dict(module.state_dict()), dict(states[178]))
    assert (model._executor.record.updates, model._executor.record.compilations) == (178, 1)


@DOORS
def test_first_training_calls_of_several_threads_follow_each_other(door, assert_equal):
    module = WithLoss(network())
    states = states_of_training(module, 3)
    model = training(module, door)
    at_once(*[lambda: model(X)] * 3)
    assert_equal(dict(module.state_dict()), dict(states[3]))
    assert (model._executor.record.updates, model._executor.record.compilations) == (3, 1)


@pytest.mark.long
def test_training_calls_of_several_threads_follow_each_other_in_compiled_code(tmp_path, assert_equal):
    modules = [WithLoss(network()) for _ in range(2)]
    alone, model = [training(module, tier="compiled", cache=tmp_path) for module in modules]
    for _ in range(178):
        alone(X)
    model(X)
    at_once(*[lambda: [model(X) for _ in range(59)]] * 3)
    assert_equal(dict(modules[1].state_dict()), dict(modules[0].state_dict()))
    assert model.record.latest_tier == "compiled"


@DOORS
def test_a_state_dictionary_is_from_between_two_calls_while_another_thread_trains(door):
    module = WithLoss(network())
    states = states_of_training(module, 150)
    model = training(module, door)
    model(X)
    _, read = at_once(
        lambda: [model(X) for _ in range(149)],
        lambda: [{name: value.clone() for name, value in model.state_dict().items()} for _ in range(60)],
    )
    found = [next((number for number, state in enumerate(states) if same(each, state)), None) for each in read]
    assert None not in found
    assert found == sorted(found)
    assert same(model.state_dict(), states[150])


def test_inference_uses_weights_from_between_two_calls_while_another_thread_trains():
    module = WithLoss(network())
    states = states_of_training(module, 100)
    plain = copy.deepcopy(module)
    outputs = []
    for state in states:
        plain.load_state_dict(state)
        outputs.append(plain(X)[0].detach())
    train, infer = training(module), pilotage.inference(module, backend="cpu", tier="graph")
    _, seen = at_once(lambda: [train(X) for _ in range(100)], lambda: [infer(X)[0] for _ in range(60)])
    found = [next((i for i, output in enumerate(outputs) if torch.equal(each, output)), None) for each in seen]
    assert None not in found
    assert found == sorted(found)
    assert torch.equal(infer(X)[0], outputs[100])


def test_models_that_share_weights_can_be_trained_in_threads():
    first, second = network(1), network(2)
    models = [training(WithLoss(each)) for each in (first, second, nn.Sequential(nn.Linear(6, 6), first))]
    models.append(training(WithLoss(nn.Sequential(first, nn.Linear(2, 6), second))))
    at_once(*(lambda model=model: [model(X) for _ in range(10)] for model in models))
    assert [model.record.updates for model in models] == [10] * 4
    assert all(each.isfinite().all() for each in (*first.parameters(), *second.parameters()))


def test_models_that_draw_random_numbers_draw_their_own(assert_equal):
    def outputs(model):
        return [model(X) for _ in range(15)]

    alone = [outputs(pilotage.inference(network(i, drop=0.5).train(), tier="graph", seed=i)) for i in range(3)]
    models = [pilotage.inference(network(i, drop=0.5).train(), tier="graph", seed=i) for i in range(3)]
    outside = torch.get_rng_state()
    assert_equal(at_once(*(lambda model=model: outputs(model) for model in models)), alone)
    assert torch.equal(torch.get_rng_state(), outside)


def test_the_forward_of_one_model_runs_while_another_is_captured(assert_equal):
    """The running model draws from torch's generator, which a capture inspects."""
    running = pilotage.inference(network(0, drop=0.5).train(), tier="graph")
    running(X)
    for seed in range(5):
        done = threading.Event()

        def run(done=done):
            while not done.is_set():
                running(X)

        def capture(seed=seed, done=done):
            try:
                model = pilotage.inference(network(seed, drop=0.5).train(), tier="graph")
                return model(X)
            finally:
                done.set()

        _, result = at_once(run, capture)
        assert result.isfinite().all()


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    for door in ("pilotage", "poptorch"):
        for width in (5, 8):
            inference(network(width=width), door, "compiled", folder)(X)
    return folder


@pytest.mark.long
@pytest.mark.timeout(900)
@DOORS
@pytest.mark.parametrize("tier", ["graph", "compiled"])
def test_a_hundred_concurrent_first_calls_equal_eager(
    door, tier, request, fake_tensors, assert_same_state, assert_equal
):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    cache = request.getfixturevalue("warm_cache") if tier == "compiled" else None
    for _ in range(100):
        count = draw.choice([1, 1, 2, 3])
        modules = [network(draw.randrange(1 << 30), draw.choice([5, 8])) for _ in range(count)]
        plain = copy.deepcopy(modules)
        models = [inference(module, door, tier, cache) for module in modules]
        wanted = [draw.randrange(count) for _ in range(draw.choice([2, 3, 4]))]
        results = at_once(*(lambda model=models[number]: model(X) for number in wanted))
        assert_equal(results, [plain[number](X).detach() for number in wanted], 1e-5)
        for number in set(wanted):
            assert models[number]._executor.record.compilations == 1
            assert models[number]._executor.record.latest_tier == tier
            assert_intact(modules[number], plain[number], fake_tensors, assert_same_state)
            assert_equal(models[number](X), plain[number](X).detach(), 1e-5)


def test_listeners_get_one_compilation_event_from_concurrent_first_calls():
    heard = []
    model = pilotage.inference(network(), backend="cpu", tier="graph", listeners=[heard.append])
    at_once(*[lambda: model(X)] * 3)
    assert [event.fraction for event in heard if isinstance(event, CompilationProgress)].count(1.0) == 1
