"""Captured training is bitwise equal to eager PyTorch in losses, outputs, weights and buffers."""

from __future__ import annotations

import itertools
import zlib

import pytest

pytestmark = pytest.mark.slow

BATCHINGS = [
    {"gradient_accumulation": accumulation, "device_iterations": iterations, "replicas": replicas}
    for accumulation, iterations, replicas in itertools.product((1, 4), (1, 5), (1, 2))
]
MODES = [
    {"outputs": "all"},
    {"outputs": "final"},
    {"outputs": "sum"},
    {"outputs": "every_n", "output_period": 1},
]
TURNS = list(itertools.product(MODES, ("mean", "sum")))


def name_of(options: dict) -> str:
    return "-".join(str(value) for value in options.values())


def mode_for(batching: dict, mode: dict) -> dict:
    """Every second device iteration, if there are two."""
    return mode | {"output_period": 2} if mode["outputs"] == "every_n" and batching["device_iterations"] > 1 else mode


@pytest.mark.parametrize("optimizer", ["sgd_momentum", "adam"])
def test_a_captured_model_trains_as_eager_does(assert_equals_eager, model, optimizer):
    assert_equals_eager(model, optimizer)


@pytest.mark.parametrize("model", ["mlp"])
def test_a_captured_optimizer_trains_as_eager_does(assert_equals_eager, model, optimizer):
    assert_equals_eager(model, optimizer, calls=8)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["batch_norm", "encoder"])
@pytest.mark.parametrize("optimizer", ["sgd_nesterov", "rmsprop_momentum", "lamb"])
def test_models_and_optimizers_can_be_combined(assert_equals_eager, model, optimizer):
    assert_equals_eager(model, optimizer)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adamw"])
def test_accumulation_iterations_and_replicas_together_train_as_eager_loops_do(assert_equals_eager, model, optimizer):
    assert_equals_eager(
        model, optimizer, calls=2, gradient_accumulation=4, device_iterations=5, replicas=2, outputs="all"
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mlp"])
@pytest.mark.parametrize("optimizer", ["sgd_dampening"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("mode", MODES, ids=name_of)
@pytest.mark.parametrize("batching", BATCHINGS, ids=name_of)
def test_every_batching_mode_and_reduction_equals_eager_loops(
    assert_equals_eager, model, optimizer, batching, mode, reduction
):
    assert_equals_eager(model, optimizer, calls=2, reduction=reduction, **batching, **mode_for(batching, mode))


@pytest.mark.long
@pytest.mark.parametrize("batching", BATCHINGS, ids=name_of)
def test_every_model_trains_with_every_optimizer_and_batching(assert_equals_eager, model, optimizer, batching):
    """Output modes and reductions, which the test above crosses with all batchings, take turns here."""
    mode, reduction = TURNS[zlib.crc32(f"{model} {optimizer} {name_of(batching)}".encode()) % len(TURNS)]
    assert_equals_eager(model, optimizer, calls=2, reduction=reduction, **batching, **mode_for(batching, mode))
