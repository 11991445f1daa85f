"""The planner on the models that it is for: a 24-layer encoder, and CosmicTagger's A21 at downsample 1."""

import pytest
import torch

from benchmarks.prediction import networks
from benchmarks.prediction.predicted import traced_of
from benchmarks.prediction.programs import TrainingProgram
from pilotage.cli.predict.splitting import split_lines
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted
from pilotage.prediction.splitting.planning import plan_split

pytestmark = pytest.mark.slow

BOW = device_model("bow")


def encoder(batch, length, dtype):
    def make():
        network = networks.Transformer(24, 1024, 16, 30522, length, dropout=0.1).to(dtype)
        module = networks.WithLoss(network, networks.FlatLoss())
        tokens = torch.zeros(batch, length, dtype=torch.long)
        return module, [tokens, tokens], torch.optim.AdamW(module.parameters(), lr=1e-4)

    return make


def a21():
    module = networks.Cosmic("a21", torch.float16)
    images = torch.zeros(1, 3, 640, 1024)
    labels = torch.zeros(1, 3, 640, 1024, dtype=torch.long)
    return module, [images, labels], torch.optim.SGD(module.parameters(), lr=1e-3)


def plan_of(make, devices=4):
    found = traced_of(TrainingProgram(name="model", make=make), BOW)
    return plan_split(predicted(found, BOW), devices)


def test_a_large_encoder_in_half_precision_fits_four_ipus():
    plan = plan_of(encoder(1, 128, torch.float16))
    assert plan.prediction.fits
    assert len(plan.modules) == 3
    assert plan.slowest <= plan.slowest_by_hand


def test_a_large_encoder_with_long_sequences_in_float32_does_not_and_the_reason_is_named():
    plan = plan_of(encoder(8, 512, torch.float32))
    assert not plan.prediction.fits
    lines = "\n".join(split_lines(plan, []))
    assert "no split over 4 devices fits" in lines
    assert "its largest tensor is" in lines


def test_a21_at_downsample_1_fits_four_ipus():
    plan = plan_of(a21)
    assert plan.prediction.fits
    assert plan.slowest <= plan.slowest_by_hand
