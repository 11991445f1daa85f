"""Ctrl-C at any moment: weights are those after a whole number of updates, and training continues normally."""

from __future__ import annotations

import copy
import ctypes
import os
import random
import signal
import sys
import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import pilotage
import poptorch

ITERATIONS, SIZE = 3, 4


class Network(nn.Module):
    """Weights, buffers, random numbers and a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 5)
        self.norm = nn.BatchNorm1d(5)
        self.drop = nn.Dropout(0.25)
        self.last = nn.Linear(5, 2)

    def forward(self, x):
        output = self.last(self.drop(torch.tanh(self.norm(self.first(x)))))
        return output, functional.mse_loss(output, torch.ones_like(output))


def batch(number):
    return torch.randn(SIZE, 6, generator=torch.Generator().manual_seed(number))


class Trained:
    """A model that is trained batch by batch, with `pilotage.training` or the drop-in."""

    def __init__(self, door="pilotage", tier="graph", cache=None, iterations=ITERATIONS):
        torch.manual_seed(0)
        self.module, self.iterations = Network(), iterations
        if door == "pilotage":
            self.optimizer = torch.optim.Adam(self.module.parameters(), lr=0.01)
            options = {"device_iterations": iterations, "tier": tier, "seed": 5, "cache_directory": cache}
            self.step = pilotage.training(self.module, self.optimizer, backend="cpu", **options)
        else:
            self.optimizer = poptorch.optim.Adam(self.module.parameters(), lr=0.01)
            options = poptorch.Options().deviceIterations(iterations).randomSeed(5).runOn("cpu", tier=tier)
            options.showCompilationProgressBar(False)
            if cache is not None:
                options.enableExecutableCaching(cache)
            self.step = poptorch.trainingModel(self.module, options, self.optimizer)

    @property
    def executor(self):
        return self.step._executor

    @property
    def updates(self):
        return self.executor.record.updates

    def train(self):
        """Make the updates of one call, starting at the next unused batch."""
        self.step(torch.cat([batch(self.updates + i) for i in range(self.iterations)]))

    def save(self, folder):
        if isinstance(self.step, poptorch.PoplarExecutor):
            self.step.save(folder / "model.poptorch")
        else:
            self.step.save_checkpoint(folder, self.updates)

    def learnt(self):
        """The optimizer state on the device, and the positions of the random streams."""
        state = self.executor.session.optimizer_state()
        slots = {} if state is None else state.slots
        return slots, state and state.updates, self.executor.session.streams.states


class Undisturbed:
    """The same model with one update per call and no interrupts; follows another one."""

    def __init__(self, **how):
        self.model = Trained(iterations=1, **how)

    def follow(self, other):
        while self.model.updates < other.updates:
            self.model.train()

    def check(self, other, assert_equal):
        self.follow(other)
        assert_equal(dict(other.module.state_dict()), dict(self.model.module.state_dict()))
        if other.executor.is_compiled and self.model.executor.is_compiled:
            assert_equal(other.learnt(), self.model.learnt())


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    """Compiled code for every model of this file."""
    folder = tmp_path_factory.mktemp("cache")
    for door in ("pilotage", "poptorch"):
        Trained(door, "compiled", folder).train()
    return folder


def how_many(key_press, action, **places):
    """How many instructions of ours an action takes."""
    with key_press(0, **places) as press:
        action()
    return press.passed


pytestmark = pytest.mark.slow
DOORS = pytest.mark.parametrize("door", ["pilotage", "poptorch"])


@DOORS
def test_an_interrupted_call_leaves_complete_updates_and_training_continues(door, key_press, assert_equal):
    model, truth = Trained(door), Undisturbed(door=door)
    model.train()
    numbers = how_many(key_press, model.train)
    felt = 0

    @settings(max_examples=60, derandomize=True)
    @given(st.integers(1, numbers))
    def interrupted(number):
        nonlocal felt
        with key_press(number) as press:
            model.train()
        felt += press.was_felt
        truth.check(model, assert_equal)
        model.train()
        truth.check(model, assert_equal)

    interrupted()
    assert felt > 10


@pytest.mark.long
@pytest.mark.timeout(900)
@DOORS
def test_an_interrupt_at_any_instruction_of_a_call_leaves_complete_updates(door, key_press, assert_equal):
    model, truth = Trained(door), Undisturbed(door=door)
    model.train()
    for number in range(1, how_many(key_press, model.train) + 1):
        with key_press(number):
            model.train()
        truth.check(model, assert_equal)


def test_a_long_call_can_be_interrupted_between_updates(key_press):
    model = Trained()
    model.train()
    numbers = how_many(key_press, model.train)
    done = set()
    for number in range(1, numbers, numbers // 40):
        before = model.updates
        with key_press(number):
            model.train()
        done.add(model.updates - before)
    assert {1, 2} <= done


@DOORS
def test_an_interrupted_read_leaves_old_or_new_weights(door, key_press, assert_equal):
    model, truth = Trained(door), Undisturbed(door=door)
    model.train()
    places = [(t.data_ptr(), t.nbytes) for t in (*model.module.parameters(), *model.module.buffers())]
    # Look at the memory directly: any access to a tensor would fetch its values.
    memory = lambda: [ctypes.string_at(*place) for place in places]  # noqa: E731
    model.train()
    numbers = how_many(key_press, model.module.state_dict)
    for number in range(1, numbers, 3):
        model.train()
        old = memory()
        with key_press(number):
            model.module.state_dict()
        between = memory()
        truth.check(model, assert_equal)
        assert between in (old, memory())


@DOORS
def test_a_read_after_an_interrupted_call_is_up_to_date(door, key_press, assert_equal):
    model, truth = Trained(door), Undisturbed(door=door)
    model.train()
    numbers = how_many(key_press, model.train)
    for number in range(1, numbers, numbers // 25):
        model.module.state_dict()
        with key_press(number):
            model.train()
        truth.check(model, assert_equal)
        model.train()
        truth.check(model, assert_equal)


@DOORS
@pytest.mark.parametrize(
    ("places", "times"),
    [
        (("/pilotage/", "/poptorch/"), 4),
        (("/capture/module_state.py", "/capture/model.py"), 4),
        pytest.param(("/pilotage/", "/poptorch/"), 40, marks=pytest.mark.long),
        pytest.param(("/arrival/", "/runtime/arrival", "/poptorch/_capture/"), 40, marks=pytest.mark.long),
    ],
    ids=["everywhere", "state", "everywhere, often", "comparison, often"],
)
def test_an_interrupt_in_the_first_call_leaves_the_module_and_torch_unchanged(
    door, places, times, key_press, assert_equal, fake_tensors
):
    # The first capture of a process imports more of torch.
    Trained(door).train()
    before = Trained(door)
    names = {name: set(vars(part)) for name, part in before.module.named_modules()}
    state, numbers = copy.deepcopy(before.module.state_dict()), how_many(key_press, before.train, places=places)
    for number in range(1, numbers, numbers // times):
        model = Trained(door)
        generator = torch.get_rng_state()
        with key_press(number, places) as press:
            model.train()
        assert press.was_felt == press.was_sent
        assert torch._C._len_torch_function_stack() == 0
        assert not _get_current_dispatch_mode_stack()
        assert not fake_tensors([[part._parameters, part._buffers] for part in model.module.modules()])
        assert {name: set(vars(part)) for name, part in model.module.named_modules()} == names
        assert torch.equal(torch.get_rng_state(), generator)
        if not model.updates:
            assert_equal(dict(model.module.state_dict()), dict(state))
        truth = Undisturbed(door=door)
        truth.check(model, assert_equal)
        model.train()
        truth.check(model, assert_equal)


@DOORS
def test_an_interrupt_while_a_model_is_saved_harms_neither_the_model_nor_its_files(
    door, key_press, assert_equal, tmp_path
):
    model, truth = Trained(door), Undisturbed(door=door)
    model.train()
    numbers = how_many(key_press, lambda: model.save(tmp_path))
    for number in range(1, numbers, numbers // 15):
        with key_press(number):
            model.save(tmp_path)
        truth.check(model, assert_equal)
        model.train()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


ACTIONS = {
    "detach": lambda model: model.step.detach(),
    "attach": lambda model: model.executor.attach(),
    "destroy": lambda model: model.step.destroy(),
    "compile": lambda model: model.step.compile(torch.cat([batch(0)] * ITERATIONS)),
    "load": lambda model: model.step.restore_checkpoint(model.folder),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_interrupt_while_a_program_is_attached_or_detached_loses_no_weights(
    action, key_press, assert_equal, tmp_path
):
    model, numbers = Trained(), 1
    model.folder, number = tmp_path, 0
    while number < numbers:
        model.train()
        if action == "load":
            model.save(tmp_path)
        state = model.executor.session.attached
        expected = {name: tensor.clone() for name, tensor in {**state.parameters, **state.buffers()}.items()}
        if action == "attach":
            model.step.detach()
        with key_press(number) as press:
            ACTIONS[action](model)
        assert_equal(dict(model.module.state_dict()), expected)
        numbers = max(numbers, press.passed)
        number += max(1, numbers // 12)


@pytest.mark.parametrize("action", ["detach", "attach", "load"])
def test_an_interrupt_while_a_program_is_attached_or_detached_loses_no_optimizer_state(
    action, key_press, assert_equal, tmp_path
):
    model, truth, numbers, number = Trained(), Undisturbed(), 1, 0
    model.folder = tmp_path
    while number < numbers:
        model.train()
        if action == "load":
            model.save(tmp_path)
        if action == "attach":
            model.step.detach()
        with key_press(number) as press:
            ACTIONS[action](model)
        truth.check(model, assert_equal)
        numbers = max(numbers, press.passed)
        number += max(1, numbers // 12)


def test_a_users_handler_is_called_once_and_training_continues(key_press, assert_equal):
    model, truth, calls = Trained(), Undisturbed(), []
    model.train()
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        for number in (100, 400, 900, 1600):
            with key_press(number) as press:
                model.train()
            assert press.was_sent
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [signal.SIGINT] * 4
    assert model.updates == 5 * ITERATIONS
    truth.check(model, assert_equal)


def interrupted_after(seconds, action):
    """Send a real signal from another thread after some time; returns when it was handled."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    dropped, others = [], sys.unraisablehook
    # In the callback of a weak reference, Python itself drops what is raised, and goes on.
    sys.unraisablehook = lambda each: dropped.append(each) if each.exc_type is KeyboardInterrupt else others(each)
    try:
        timer.start()
        action()
        while timer.is_alive():
            timer.join(0.01)
        time.perf_counter()
    except KeyboardInterrupt:
        timer.join()
        return
    finally:
        sys.unraisablehook = others
    assert dropped, "the signal was never felt"


@pytest.mark.long
@pytest.mark.timeout(600)
@DOORS
@pytest.mark.parametrize("tier", ["graph", "compiled"])
def test_two_hundred_interrupts_leave_weights_as_without_them(door, tier, request, tmp_path, assert_equal):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    cache = request.getfixturevalue("warm_cache") if tier == "compiled" else None
    model, truth = Trained(door, tier, cache), Undisturbed(door=door, tier=tier, cache=cache)
    model.train()
    actions = {"call": model.train, "read": model.module.state_dict, "save": lambda: model.save(tmp_path)}
    usual = {}
    for name, action in actions.items():
        model.train()
        start = time.perf_counter()
        action()
        usual[name] = time.perf_counter() - start
    for _ in range(200):
        name = draw.choice(["call", "call", "read", "save"])
        if name != "call" or draw.random() < 0.5:
            model.train()
        if draw.random() < 0.5:
            model.module.state_dict()
        interrupted_after(draw.uniform(0, 1.2 * usual[name]), actions[name])
        truth.check(model, assert_equal)
    assert model.executor.record.latest_tier == tier
