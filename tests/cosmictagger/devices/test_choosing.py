"""Which device a configuration gets."""

from dataclasses import replace

import pytest
import torch

from cosmictagger.configuration.choices import ComputeMode, ModeKind, OptimizerKind, Precision
from cosmictagger.configuration.mode import Inference, Optimizer, Train
from cosmictagger.configuration.network import A21
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from cosmictagger.devices.choosing import choose_device
from cosmictagger.devices.plain import PlainDevice
from cosmictagger.errors import ConfigurationError

SMALL = replace(A21, depth=0, n_initial_filters=2, bottleneck_deepest=2)


def configured(mode, **run):
    return Configuration(run=Run(id="x", **run), mode=mode, network=SMALL)


def test_a_processor_is_served_plainly_with_the_configured_optimizer():
    mode = Train(optimizer=Optimizer(name=OptimizerKind.rmsprop))
    _, device = choose_device(configured(mode, compute_mode=ComputeMode.CPU))
    assert isinstance(device, PlainDevice)
    assert device.placement().optimizer == "RMSprop"


def test_float16_holds_its_weights_in_float16():
    mode = Inference(name=ModeKind.inference)
    network, device = choose_device(configured(mode, precision=Precision.float16))
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float16}
    assert device.placement().precision == "float16 activations, float16 weights (not run)"


def test_a_mode_without_a_device_is_refused():
    with pytest.raises(ConfigurationError, match="DPCPP is not there"):
        choose_device(configured(Train(), compute_mode=ComputeMode.DPCPP))


def test_an_ipu_gets_a_wrapped_network_with_the_configured_optimizer():
    mode = Train(optimizer=Optimizer(name=OptimizerKind.rmsprop))
    _, device = choose_device(configured(mode, compute_mode=ComputeMode.IPU, num_replicas=2))
    placement = device.placement()
    assert (placement.optimizer, placement.replicas, placement.compiled) == ("RMSprop", 2, False)
    assert "poptorch" in placement.backend
