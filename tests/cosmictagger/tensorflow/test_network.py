"""The network in TensorFlow gives the torch network's results from the same weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cosmictagger.configuration.choices import Connection, DownSampling, GrowthRate, Norm, UpSampling
from cosmictagger.configuration.network import A21, URESNET
from cosmictagger.tensorflow.network import UResNet2D

VARIANTS = {
    "no connections": {"connections": Connection.none},
    "multiplicative growth": {"growth_rate": GrowthRate.multiplicative},
    "convolutions that resize": {
        "downsampling": DownSampling.convolutional,
        "upsampling": UpSampling.convolutional,
    },
    "planes apart": {"block_concat": True},
    "no bias": {"bias": False},
    "no normalization": {"normalization": Norm.none},
}


def compare(small, network, *, training, kind=torch.float32, tolerance=1e-4):
    module = small.network(network, kind).train(training)
    twin = UResNet2D.of(network, module, str(kind).removeprefix("torch."))
    image = torch.from_numpy(small.batch(1).image)
    with torch.no_grad():
        wanted = module(image.to(kind))
    found = twin.logits(image.numpy(), training=training)
    assert len(found) == len(wanted) == 3
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.shape == tuple(theirs.shape)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("preset", [A21, URESNET], ids=["a21", "uresnet"])
def test_a_preset_gives_the_logits_of_torch_within_1e_4(small, preset):
    compare(small, replace(preset, depth=3), training=False)


@pytest.mark.parametrize("name", ["a21", "uresnet"])
def test_batch_statistics_give_the_logits_of_torch_up_to_rounding(small, name):
    compare(small, small.networks[name], training=True, kind=torch.float64, tolerance=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_option_of_the_network_has_its_meaning(small, variant):
    network = replace(small.networks["uresnet"], **VARIANTS[variant])
    for training in (False, True):
        compare(small, network, training=training, kind=torch.float64, tolerance=1e-9)


def test_weights_survive_the_way_to_tensorflow_and_back(small):
    network = small.networks["uresnet"]
    module = small.network(network)
    back = UResNet2D.of(network, module).state_dict()
    assert back.keys() == module.state_dict().keys()
    assert all(torch.equal(back[name], values) for name, values in module.state_dict().items())


def test_a_network_takes_over_other_weights(small):
    network = small.networks["a21"]
    module = small.network(network)
    twin = UResNet2D.of(network, module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    twin.load(module.state_dict())
    assert torch.equal(twin.state_dict()["bottleneck.weight"], module.state_dict()["bottleneck.weight"])
