"""Gradients of the networks on a CPU, against float64.

The tolerance comes from the same network written plainly: torch's own batch normalisation, plane by plane, with
contiguous tensors.
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.network import PRESETS
from cosmictagger.data.downsampling import downsample_event
from cosmictagger.data.generator.event import generate_event
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.training.step import TrainingStep

MOST = 2.0
"""The tolerance: this many times the plain network's distance from float64."""


@pytest.fixture
def threads(request):
    """Set the number of threads during a test."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def generated_event(downsample):
    return downsample_event(generate_event(11, 0).images, downsample).dense()


def first_event(downsample):
    """The first real event, if present, else a generated one."""
    place = Path(os.environ.get("COSMICTAGGER_REAL_FILE", ""))
    if not place.is_file():
        return generated_event(downsample)
    pytest.importorskip("h5py")
    from cosmictagger.data.larcv.event_file import EventFile

    with EventFile(place) as file:
        return downsample_event(file.event(0), downsample).dense()


def plain_loss(planes, labels):
    """The focal loss by its definition."""
    total = 0
    for scores, label in zip(planes, labels.unbind(1), strict=True):
        entropy = F.cross_entropy(scores, label.long(), reduction="none")
        weights = (1 - scores.detach().softmax(1).gather(1, label.long().unsqueeze(1))[:, 0]).square()
        total = total + (weights * entropy).sum() / weights.sum()
    return total


def gradient_of(network, loss):
    """All gradients as one vector, without biases that normalisation cancels: theirs are zero except for rounding."""
    network.zero_grad()
    loss.backward()
    cancelled = {f"{name}.conv.bias" for name, module in network.named_modules() if getattr(module, "norm", None)}
    named = [(name, each.grad) for name, each in network.named_parameters() if name not in cancelled]
    return torch.cat([gradient.double().flatten() for _, gradient in named])


def plain_gradient(plain_network, options, weights, image, label, kind):
    network = UResNet(options).to(kind)
    network.load_state_dict(weights)
    # A large network in float64 would need all the memory of a small machine.
    planes = plain_network(network, options, recomputes=True)(image.to(kind))
    return gradient_of(network, plain_loss(planes, label))


def errors(plain_network, options, event):
    """Relative distances of our network and the plain one from float64."""
    torch.manual_seed(0)
    ours = build(options)
    weights = {name: each.clone() for name, each in ours.state_dict().items()}
    image, label = (torch.from_numpy(each).unsqueeze(0) for each in event)
    truth = plain_gradient(plain_network, options, weights, image, label, torch.float64)
    plain = plain_gradient(plain_network, options, weights, image, label, torch.float32)
    _, loss = TrainingStep(ours, LossBalanceScheme.focal)(image, label)
    found = gradient_of(ours, loss)
    return tuple(float((each - truth).norm() / truth.norm()) for each in (found, plain))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "downsample"), [("a21", 3), pytest.param("a21", 2, marks=pytest.mark.long), ("uresnet", 3)]
)
def test_gradients_are_about_as_close_to_float64_as_those_of_the_plain_network(preset, downsample, plain_network):
    options = replace(
        PRESETS[preset], depth=7 - downsample, blocks_deepest_layer=2, blocks_final=min(1, PRESETS[preset].blocks_final)
    )
    ours, plain = errors(plain_network, options, generated_event(downsample))
    assert ours <= MOST * plain


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("threads", [1, 2], indirect=True)
@pytest.mark.parametrize("downsample", [3, 2, 1])
@pytest.mark.parametrize("preset", ["a21", "uresnet"])
def test_gradients_of_whole_networks_are_about_as_close_to_float64(preset, downsample, threads, plain_network):
    # Images can be halved five times at downsample 3, and six times, as the presets do, at the others.
    options = replace(PRESETS[preset], depth=5) if downsample == 3 else PRESETS[preset]
    ours, plain = errors(plain_network, options, first_event(downsample))
    assert ours <= MOST * plain
