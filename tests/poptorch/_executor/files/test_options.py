"""The options in a file."""

from __future__ import annotations

import pytest
import torch

import poptorch
from poptorch import Options

pytestmark = pytest.mark.slow


def test_options_come_back_and_can_be_edited(path, network, inputs, targets):
    made = Options().deviceIterations(2).modelName("net")
    made.Training.gradientAccumulation(2)
    module = network()
    model = poptorch.trainingModel(module, made)
    model.compile(inputs, targets)
    model.save(path)
    again = poptorch.load(path)
    assert again.options.device_iterations == 2
    assert again.options.Training.gradient_accumulation == 2
    assert again.options.model_name == "net"
    seen = []
    edited = poptorch.load(path, edit_opts_fn=lambda o: seen.append(o.deviceIterations(1)))
    assert isinstance(seen[0], Options)
    assert edited(inputs[:2], targets[:2])["loss"].shape == ()
    with pytest.raises(AttributeError, match="frozen"):
        edited.options.deviceIterations(3)


@pytest.mark.parametrize(
    "edit",
    [
        lambda o: o.Training.gradientAccumulation(4),
        lambda o: o.replicationFactor(2),
        lambda o: o.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum),
        lambda o: o.Training.setAutomaticLossScaling(True),
    ],
)
def test_settings_that_are_compiled_in_cannot_be_edited(path, edit, network, inputs, targets):
    made = Options()
    made.Training.gradientAccumulation(2)
    poptorch.trainingModel(network(), made).compileAndExport(path, inputs, targets)
    with pytest.raises(poptorch.Error, match="are compiled into the program"):
        poptorch.load(path, edit_opts_fn=edit)


def test_an_edited_seed_starts_a_new_stream(path, network, inputs):
    model = poptorch.inferenceModel(network(), Options().randomSeed(1))
    model(inputs)
    model.save(path)
    expected = poptorch.inferenceModel(network(), Options().randomSeed(8))(inputs)
    assert torch.equal(poptorch.load(path, edit_opts_fn=lambda o: o.randomSeed(8))(inputs), expected)
