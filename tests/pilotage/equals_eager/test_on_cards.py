"""Captured training on an NVIDIA card compared with eager PyTorch on the CPU, in float64.

In float64, differences of rounding are far below the tolerance, and real errors are far above it.
"""

from __future__ import annotations

import itertools

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")

ON_CARD = {"backend": "cuda", "dtype": torch.float64, "tolerance": 1e-7}
BATCHINGS = [
    {"gradient_accumulation": accumulation, "device_iterations": iterations, "replicas": replicas}
    for accumulation, iterations, replicas in itertools.product((1, 4), (1, 4), (1, 2))
]


def test_every_model_and_optimizer_train_as_eager_does(assert_equals_eager, model, optimizer):
    # The first call is walked, the second recorded, and the others are replayed.
    assert_equals_eager(model, optimizer, calls=5, tier="graph", **ON_CARD)


@pytest.mark.parametrize("outputs", ["all", "final", "sum"])
@pytest.mark.parametrize("batching", BATCHINGS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("model", ["mlp", "batch_norm"])
@pytest.mark.parametrize("optimizer", ["sgd_momentum"])
def test_every_batching_and_output_mode_equals_eager_loops(assert_equals_eager, model, optimizer, batching, outputs):
    assert_equals_eager(model, optimizer, calls=4, tier="graph", outputs=outputs, **batching, **ON_CARD)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd_momentum", "adamw"])
@pytest.mark.parametrize("batching", [BATCHINGS[0], BATCHINGS[-1]], ids=["plain", "everything"])
def test_compiled_code_trains_as_eager_does(
    assert_equals_eager, model, optimizer, batching, tmp_path_factory, monkeypatch
):
    monkeypatch.setenv("PILOTAGE_CACHE_DIR", str(tmp_path_factory.mktemp("executables")))
    assert_equals_eager(model, optimizer, calls=4, tier="compiled", **batching, **ON_CARD)
