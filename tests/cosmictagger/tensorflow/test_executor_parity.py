"""Training in TensorFlow against recorded numbers of the original program, on real events."""

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.network import PRESETS
from cosmictagger.data.larcv.event_file import EventFile
from cosmictagger.tensorflow.executor import TensorflowExecutor
from cosmictagger.training.metrics import KEYS


@pytest.fixture(scope="module")
def recorded():
    place = Path(os.environ.get("COSMICTAGGER_PARITY_FILE", ""))
    if not place.is_file():
        pytest.skip("COSMICTAGGER_PARITY_FILE names no file")
    return json.loads(place.read_text())["cases"]


def from_formula(name, shape):
    """The weights of the recorded runs: a hash of the parameter's name and the element's place."""
    mask = np.uint64(2**32 - 1)
    hashed = (np.arange(np.prod(shape), dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()))) & mask
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        hashed = ((hashed ^ (hashed >> np.uint64(shift))) * np.uint64(factor)) & mask
    drawn = ((hashed ^ (hashed >> np.uint64(16))).astype(np.float64) + 0.5) / 2**31 - 1.0
    if len(shape) > 1:
        drawn *= np.sqrt(3.0 / np.prod(shape[1:]))
    else:
        drawn = 1.0 + 0.25 * drawn if name.endswith("norm.weight") else 0.1 * drawn
    return torch.from_numpy(drawn.reshape(shape))


@pytest.mark.parametrize("case", ["a21_depth3", "uresnet_depth3"])
def test_twenty_steps_give_the_losses_and_metrics_of_the_original(small, recorded, real_events, case):
    """At the recorded rate of 1e-5, where float32's rounding does not grow."""
    given = recorded[case]
    network = replace(PRESETS[given["preset"]], **given["changed_fields"])
    setup = small.setup(network, loss_balance_scheme=LossBalanceScheme.focal)
    fresh = {name: torch.zeros_like(each) for name, each in setup.network.state_dict().items()}
    fresh |= {name: torch.ones_like(each) for name, each in fresh.items() if name.endswith("running_var")}
    fresh |= {name: from_formula(name, tuple(each.shape)) for name, each in setup.network.named_parameters()}
    setup.network.load_state_dict(fresh)
    trainer = TensorflowExecutor(setup, network)
    with EventFile(real_events) as file:
        batch = file.dense_batch([0, 1], 3)

    judged, exact = trainer.evaluate(batch), given["float64"]
    wanted = [exact["eval_metrics"][key] for key in KEYS]
    # Rounding decides single pixels, of 81,920 in a plane of both events.
    np.testing.assert_allclose(judged.metrics.numpy(), wanted, atol=5e-5)
    losses = [trainer.train([batch], 1e-5).loss for _ in range(20)]
    assert losses[0] == pytest.approx(exact["train_losses"]["focal"], rel=1e-5)
    assert losses == pytest.approx(exact["adam_small_rate_losses"], abs=1e-3)
