"""Losses and metrics of the heads, against explicit sums."""

import math

import pytest
import torch

from cosmictagger.configuration.network import Network
from cosmictagger.networks.uresnet import Outputs
from cosmictagger.training.heads import EVENT_KEYS, VERTEX_KEYS, head_keys, head_losses

SCORES = torch.zeros(3, 3, 8, 8)


def found(values, vertex, event=None):
    loss, numbers = head_losses(Outputs(SCORES, event, values), torch.tensor([2]), vertex)
    keys = (EVENT_KEYS if event is not None else ()) + (VERTEX_KEYS if values is not None else ())
    return loss, dict(zip(keys, numbers.tolist(), strict=True))


def test_keys_follow_the_heads():
    assert head_keys(Network()) == ()
    assert head_keys(Network(event_label=True, vertex=True)) == EVENT_KEYS + VERTEX_KEYS


def test_the_event_class_is_a_cross_entropy_of_small_weight():
    event = torch.tensor([[0.0, 1.0, 2.0, 0.0]])
    loss, numbers = found(None, torch.zeros(1, 3, 2), event)
    entropy = -math.log(math.exp(2) / (2 + math.exp(1) + math.exp(2)))
    assert float(loss) == pytest.approx(0.01 * entropy, rel=1e-5)
    assert numbers["Event_Accuracy"] == 1
    assert numbers["loss/event_label"] == pytest.approx(entropy, rel=1e-5)


def sure_of(cell, offsets=(0.5, 0.5)):
    """Outputs with the vertex in this cell of a 2 x 2 grid, at this offset."""
    values = torch.full((3, 3, 2, 2), -12.0)
    values[:, 0, cell[0], cell[1]] = 12.0
    values[:, 1:] = torch.logit(torch.tensor(offsets)).view(1, 2, 1, 1)
    return values


def test_a_correct_vertex_has_no_loss():
    vertex = torch.tensor([[[5.0, 3.0]] * 3])
    loss, numbers = found(sure_of((1, 0), (0.25, 0.75)), vertex)
    assert float(loss) == pytest.approx(0.0, abs=1e-4)
    assert numbers["VertexDetection"] == 1
    assert numbers["VertexResolution"] == pytest.approx(0.0, abs=1e-4)


def test_a_vertex_in_another_cell_counts_its_distance_in_pixels():
    vertex = torch.tensor([[[5.0, 3.0]] * 3])
    loss, numbers = found(sure_of((0, 0), (0.25, 0.75)), vertex)
    assert numbers["VertexDetection"] == 0
    assert numbers["VertexResolution"] == pytest.approx(4.0, abs=1e-3)
    assert float(loss) > 1


def test_offsets_have_a_squared_loss():
    vertex = torch.tensor([[[5.0, 3.0]] * 3])
    loss, _ = found(sure_of((1, 0), (0.5, 0.75)), vertex)
    assert float(loss) == pytest.approx(0.3 * 3 * 0.25**2, rel=1e-3)


def test_an_event_without_a_vertex_is_not_a_miss():
    loss, numbers = found(torch.full((3, 3, 2, 2), -12.0), torch.full((1, 3, 2), -1.0))
    assert (numbers["VertexDetection"], numbers["VertexResolution"]) == (1, 0)
    assert float(loss) == pytest.approx(0.0, abs=1e-4)
