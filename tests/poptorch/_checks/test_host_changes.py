"""Changes of the module that PopTorch does not take over by itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch

X, TARGET = torch.ones(4, 3), torch.zeros(4, 2)


@pytest.fixture
def warnings(warnings_of_poptorch):
    return lambda: [text for text in warnings_of_poptorch() if "wrapped model" in text]


def quiet():
    return poptorch.Options().showCompilationProgressBar(False)


def double(module):
    with torch.no_grad():
        module.weight.mul_(2)


def test_edited_weights_are_reported_once_and_not_used(regression, train_with, warnings):
    train = train_with(regression)
    train(X, TARGET)
    expected = regression.weight.clone()
    double(regression)
    train(X, TARGET)
    double(regression)
    train(X, TARGET)
    (warning,) = warnings()
    assert warning.startswith("weight was changed on the host after it was copied to the device")
    assert "copyWeightsToDevice()" in warning
    assert regression.weight.abs().sum() < 2 * expected.abs().sum()


def test_a_state_that_is_loaded_into_the_bare_module_is_reported(regression, train_with, warnings):
    train = train_with(regression)
    train(X, TARGET)
    regression.load_state_dict(regression.state_dict())
    train(X, TARGET)
    assert warnings()[0].startswith("weight (and 1 more) was changed")


def test_weights_that_are_copied_read_or_loaded_by_the_wrapper_are_not_reported(regression, train_with, warnings):
    train = train_with(regression)
    for _ in range(2):
        train(X, TARGET)
        double(regression)
        train.copyWeightsToDevice()
        train(X, TARGET)
        train.load_state_dict(regression.state_dict())
        train(X, TARGET)
        regression.weight.sum()
        train.copyWeightsToHost()
    assert warnings() == []


def test_edited_weights_of_an_inference_model_are_reported(warnings):
    module = nn.Linear(3, 2)
    infer = poptorch.inferenceModel(module, quiet())
    before = infer(X)
    double(module)
    assert torch.equal(infer(X), before)
    assert len(warnings()) == 1


def test_what_training_writes_to_the_weights_of_an_inference_model_is_not_reported(regression, train_with, warnings):
    train, infer = train_with(regression), poptorch.inferenceModel(regression, quiet())
    for _ in range(3):
        infer(X, TARGET)
        train(X, TARGET)
        regression.weight.sum()
        infer(X, TARGET)
    assert warnings() == []


def test_buffers_that_are_copied_by_name_are_not_reported(warnings):
    module = nn.BatchNorm1d(3).eval()
    options = quiet()
    options.updatableNamedBuffers(["running_mean"])
    infer = poptorch.inferenceModel(module, options)
    infer(X)
    module.running_mean.fill_(1)
    infer.copyNamedBuffersToDevice()
    infer(X)
    assert warnings() == []
    module.running_var.fill_(2)
    infer(X)
    assert warnings()[0].startswith("running_var was changed")


class Noisy(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 2), nn.Dropout(0.5))

    def forward(self, x, target=None):
        output = super().forward(x)
        return output if target is None else (output, nn.functional.mse_loss(output, target))


def test_a_mode_that_is_set_on_the_module_is_reported_once_and_has_no_effect(train_with, warnings):
    module = Noisy()
    train = train_with(module)
    for _ in range(3):
        assert (train(X, TARGET)[0] == 0).any()
        module[1].eval()
    (warning,) = warnings()
    assert warning.startswith("1 was put in evaluation mode after the model was compiled")


def test_evaluation_mode_that_is_set_beside_an_inference_model_is_reported(warnings):
    module = Noisy()
    infer = poptorch.inferenceModel(module, quiet())
    infer(X)
    module.eval()
    infer(X)
    assert [text[:36] for text in warnings() if "compiled" in text] == ["Noisy (and 2 more) was put in evalua"]


def test_a_module_that_is_trained_beside_an_inference_model_is_not_reported(train_with, warnings):
    module = Noisy().eval()
    infer = poptorch.inferenceModel(module, quiet())
    train = train_with(module.train())
    before = infer(X)
    module.train()
    assert torch.equal(infer(X), before)
    train(X, TARGET)
    assert torch.equal(infer(X), infer(X))
    assert warnings() == []


def test_a_mode_that_is_set_on_the_wrapper_is_not_reported(warnings):
    module = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).eval()
    infer = poptorch.inferenceModel(module, quiet())
    infer(X)
    infer.train()
    infer(X)
    infer.eval()
    infer(X)
    assert [text for text in warnings() if "after the model was compiled" in text] == []
