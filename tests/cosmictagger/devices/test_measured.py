"""The faster of two executors, with the results of either."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import Engine
from cosmictagger.configuration.framework import Torch
from cosmictagger.configuration.mode import Inference, Train
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.data.events import Batch
from cosmictagger.devices import measured
from cosmictagger.devices.choosing import device_for
from cosmictagger.devices.measured import TIMED, WARM_UP, MeasuredExecutor

SMALL = replace(A21, depth=1, n_initial_filters=2, bottleneck_deepest=2, blocks_deepest_layer=1)
STEPS = 2 * (WARM_UP + TIMED) + 2


def batches():
    random = np.random.default_rng(0)
    for number in range(STEPS):
        image = random.random((2, 3, 16, 16), np.float32)
        yield Batch(image, (image * 3).astype(np.uint8), np.arange(2) + number, np.zeros((2, 3), np.int64))


def configured(engine, iterations=1000, mode=None):
    run = Run(id="x", iterations=iterations)
    return Configuration(run=run, mode=mode or Train(), network=SMALL, framework=Torch(engine=engine))


def executor_for(*given, **settings):
    torch.manual_seed(0)
    config = configured(*given, **settings)
    return device_for(config).executor(config)


def trained(engine):
    executor = executor_for(engine)
    losses = [executor.train([batch], 1e-3).loss for batch in batches()]
    return losses, executor


@pytest.fixture(scope="module")
def plain():
    return trained(Engine.eager)


@pytest.mark.slow
@pytest.mark.parametrize(("faster", "tier"), [("eager", "eager"), ("pilotage", "graph")])
def test_the_faster_way_is_kept_and_changes_no_result(plain, monkeypatch, faster, tier):
    clock = Clock(slow={"eager": "pilotage", "pilotage": "eager"}[faster])
    monkeypatch.setattr(measured.time, "perf_counter", clock)
    monkeypatch.setattr(MeasuredExecutor, "train", clock.watch(MeasuredExecutor.train))
    torch.manual_seed(0)
    losses, executor = trained(Engine.auto)
    expected, eager = plain
    assert losses == pytest.approx(expected, rel=1e-6)
    placement = executor.placement()
    assert (placement.tier, placement.updates) == (tier, STEPS)
    assert "a step took" in placement.reason
    for name, tensor in executor.state()["state_dict"].items():
        torch.testing.assert_close(tensor, eager.state()["state_dict"][name], rtol=1e-4, atol=1e-6)


class Clock:
    """A clock on which one way of executing takes longer."""

    def __init__(self, slow):
        self.slow, self.now, self.way = slow, 0.0, "eager"

    def watch(self, train):
        def watched(executor, *given):
            self.way = executor._name
            return train(executor, *given)

        return watched

    def __call__(self):
        self.now += 2.0 if self.way == self.slow else 1.0
        return self.now


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"engine": Engine.eager}, "framework.engine=eager"),
        ({"engine": Engine.auto, "iterations": 5}, "5 steps are too few"),
        ({"engine": Engine.auto, "mode": Inference()}, "evaluation gains nothing"),
    ],
)
def test_the_plain_loop_says_why_it_was_chosen(settings, words):
    placement = executor_for(**settings).placement()
    assert words in placement.reason
    assert placement.tier == "eager"


@pytest.mark.slow
def test_a_program_can_be_asked_for(plain):
    losses, executor = trained(Engine.pilotage)
    assert losses == pytest.approx(plain[0], rel=1e-6)
    placement = executor.placement()
    assert (placement.backend, placement.tier, placement.compiled) == ("pilotage cpu", "graph", True)
    assert placement.reason == "framework.engine=pilotage"
