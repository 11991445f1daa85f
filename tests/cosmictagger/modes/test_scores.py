"""Averages of batches over events."""

import math

import pytest
import torch

from cosmictagger.modes.scores import BatchScores, averages, of_heads, row
from cosmictagger.training.metrics import KEYS


def scores(values, pixels, loss, heads=None):
    numbers = torch.tensor(values).view(1, -1, 1).expand(3, -1, 5)
    return BatchScores(numbers=numbers, neutrino_pixels=torch.tensor(pixels), loss=loss, heads=heads)


FULL, PADDED = scores([0.2, 0.4], [5, 20], 2.0, (0.5,)), scores([0.9], [30], None)


def test_metrics_are_averaged_over_events_and_losses_over_full_batches():
    found = averages([FULL, PADDED])
    assert found["Average/mIoU"] == pytest.approx(0.5)
    assert found["plane2/Cosmic_IoU"] == pytest.approx(0.5)
    assert found["loss"] == 2.0
    assert averages([FULL, PADDED], neutrino_pixels=10)["Average/mIoU"] == pytest.approx(0.65)


def test_heads_are_averaged_over_full_batches():
    assert of_heads([FULL, PADDED], ("Event_Accuracy",)) == {"Event_Accuracy": 0.5}
    assert of_heads([PADDED], ("Event_Accuracy",)) == {}


def test_a_padded_batch_has_no_loss_in_its_row():
    assert list(row(FULL, ("Event_Accuracy",))) == [*KEYS, "loss", "Event_Accuracy"]
    found = row(PADDED, ("Event_Accuracy",))
    assert math.isnan(found["loss"])
    assert math.isnan(found["Event_Accuracy"])


def test_scores_survive_the_way_to_another_process():
    back = BatchScores.from_plain(FULL.plain())
    assert (back.loss, back.heads, back.events) == (2.0, (0.5,), 2)
    assert torch.equal(back.numbers, FULL.numbers)
