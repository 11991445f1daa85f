import itertools
import random
from dataclasses import replace

import pytest
import torch
from torch import nn

from benchmarks.prediction import networks
from benchmarks.prediction.predicted import traced_of
from benchmarks.prediction.programs import TrainingProgram
from pilotage.cli.predict.splitting import split_lines
from pilotage.prediction.devices import device_model
from pilotage.prediction.prediction import predicted, traced
from pilotage.prediction.splitting.planning import plan_split
from pilotage.prediction.splitting.units import assigned_stages, units_of


class Uneven(nn.Module):
    """Layers of different cost."""

    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 32)) for width in widths
        )

    def forward(self, x, target):
        for layer in self.layers:
            x = layer(x)
        return nn.functional.mse_loss(x, target)


def prediction_of(subject_of, widths, name="cpu", **options):
    model = device_model(name)
    subject = subject_of(Uneven(widths), [torch.zeros(64, 32)] * 2, **options)
    return predicted(traced(subject, model), model)


def whole(prediction, units, chosen):
    stages = assigned_stages(prediction, [units[place].first for place in chosen])
    return predicted(prediction.traced, prediction.model, prediction.arithmetic, assigned=stages)


def slowest_of(prediction):
    return max(each.work for each in prediction.stage_seconds)


def slowest(prediction, units, chosen):
    return slowest_of(whole(prediction, units, chosen))


@pytest.mark.parametrize(
    ("seed", "devices"),
    [(seed, devices) for seed in range(2) for devices in (2, 3)]
    + [pytest.param(seed, devices, marks=pytest.mark.slow) for seed in range(2, 6) for devices in (2, 3, 4)],
)
def test_the_slowest_stage_is_within_a_tenth_of_the_best_of_all_splits(subject_of, seed, devices):
    generator = random.Random(seed)
    widths = [generator.choice((64, 256, 1024, 2048)) for _ in range(generator.randint(devices + 1, 6))]
    prediction = prediction_of(subject_of, widths)
    units = units_of(prediction, devices)
    plan = plan_split(prediction, devices)
    all_splits = itertools.combinations(range(1, len(units)), devices - 1)
    best = min(slowest(prediction, units, chosen) for chosen in all_splits)
    assert plan.slowest <= 1.1 * best


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_of_the_splits_that_fit_nearly_the_best_is_found(subject_of, seed):
    """The device is so small that only some of the splits fit."""
    generator, devices = random.Random(seed), 3
    widths = [generator.choice((64, 512, 2048)) for _ in range(6)]
    prediction = prediction_of(subject_of, widths, gradient_accumulation=4)
    units = units_of(prediction, devices)
    every = {
        chosen: whole(prediction, units, chosen) for chosen in itertools.combinations(range(1, len(units)), devices - 1)
    }
    peaks = sorted(each.peak_bytes for each in every.values())
    capacity = peaks[len(peaks) // 3]
    smaller = replace(prediction.model, memory=replace(prediction.model.memory, capacity_bytes=capacity))
    prediction = replace(prediction, model=smaller)
    plan = plan_split(prediction, devices)
    assert plan.prediction.fits
    fitting = [each for each in every.values() if each.peak_bytes <= capacity]
    assert plan.slowest <= 1.1 * min(slowest_of(each) for each in fitting)


def test_the_plan_says_that_nothing_fits(subject_of):
    prediction = prediction_of(subject_of, [512] * 4)
    tiny = replace(prediction.model, memory=replace(prediction.model.memory, capacity_bytes=1000))
    plan = plan_split(replace(prediction, model=tiny), 2)
    assert not plan.prediction.fits
    lines = "\n".join(split_lines(plan, []))
    assert "no split over 2 devices fits: stage" in lines
    assert "its largest tensor is" in lines


def test_equal_layers_are_divided_equally(subject_of):
    plan = plan_split(prediction_of(subject_of, [512] * 8, "bow"), 4)
    assert [each.split(".")[:2] for each in plan.modules] == [["layers", "2"], ["layers", "4"], ["layers", "6"]]
    assert plan.prediction.fits
    assert plan.slowest_by_hand >= plan.slowest


def test_a_split_that_fits_is_preferred_to_a_faster_one(subject_of):
    """The layers of the first half are cheap in time but large in memory."""
    model = device_model("mk1")

    class Tables(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(60_000, 256, device="meta") for _ in range(4))
            self.layers = nn.ModuleList(nn.Linear(256, 256, device="meta") for _ in range(8))

        def forward(self, places, target):
            x = sum(table(places) for table in self.tables)
            for layer in self.layers:
                x = torch.relu(layer(x))
            return nn.functional.mse_loss(x, target)

    inputs = [torch.zeros(256, dtype=torch.long), torch.zeros(256, 256)]
    prediction = predicted(traced(subject_of(Tables(), inputs, torch.optim.SGD), model), model)
    assert not prediction.fits
    plan = plan_split(prediction, 2)
    assert plan.prediction.peak_bytes < prediction.peak_bytes
    assert plan.modules[0].startswith("tables")


def test_a_model_with_too_few_parts_is_not_split(subject_of):
    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(4))

        def forward(self, x):
            return (x * self.weight).sum()

    model = device_model("bow")
    prediction = predicted(traced(subject_of(One(), [torch.zeros(2, 4)]), model), model)
    assert plan_split(prediction, 2) is None


# The models that it is for: a 24-layer encoder, and CosmicTagger's A21

BOW = device_model("bow")


def encoder(batch, length, dtype, optimizer):
    def make():
        network = networks.Transformer(24, 1024, 16, 30522, length, dropout=0.1).to(dtype)
        module = networks.WithLoss(network, networks.FlatLoss())
        tokens = torch.zeros(batch, length, dtype=torch.long)
        return module, [tokens, tokens], optimizer(module.parameters(), lr=1e-4)

    return make


def a21():
    module = networks.Cosmic("a21", torch.float16)
    images = torch.zeros(1, 3, 640, 1024)
    labels = torch.zeros(1, 3, 640, 1024, dtype=torch.long)
    return module, [images, labels], torch.optim.SGD(module.parameters(), lr=1e-3)


def plan_of(make, devices=4):
    found = traced_of(TrainingProgram(name="model", make=make), BOW)
    return plan_split(predicted(found, BOW), devices)


@pytest.mark.slow
def test_a_large_encoder_in_half_precision_fits_four_ipus():
    plan = plan_of(encoder(1, 128, torch.float16, torch.optim.SGD))
    assert plan.prediction.fits
    assert len(plan.modules) == 3
    assert plan.slowest <= plan.slowest_by_hand


@pytest.mark.slow
def test_a_large_encoder_with_long_sequences_in_float32_does_not_and_the_reason_is_named():
    plan = plan_of(encoder(8, 512, torch.float32, torch.optim.AdamW))
    assert not plan.prediction.fits
    lines = "\n".join(split_lines(plan, []))
    assert "no split over 4 devices fits" in lines
    assert "its largest tensor is" in lines


@pytest.mark.slow
def test_a21_at_downsample_1_fits_four_ipus():
    plan = plan_of(a21)
    assert plan.prediction.fits
    assert plan.slowest <= plan.slowest_by_hand
