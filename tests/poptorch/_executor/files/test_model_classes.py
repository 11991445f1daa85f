"""Files loaded with the model's class, without it, and without weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import poptorch

pytestmark = pytest.mark.slow


def test_a_file_can_be_loaded_into_an_instance_of_its_class(path, network, trainer, losses):
    model = trainer(seed=1)
    losses(model)
    model.save(path)
    module = network()
    again = poptorch.load(path, model=module)
    assert again.model is module
    assert torch.equal(module.layer.weight, model.model.layer.weight)
    losses(again)
    losses(model)
    assert torch.equal(module.layer.weight, model.model.layer.weight)
    with pytest.raises(RuntimeError, match="already been wrapped"):
        trainer(module)
    with pytest.raises(RuntimeError, match="already been wrapped"):
        poptorch.load(path, model=module)
    again.destroy()
    trainer(module)


def test_a_model_loaded_with_its_class_can_be_compiled_again(path, network, inputs, targets, trainer):
    model = trainer()
    model.compile(inputs, targets)
    model.save(path)
    again = poptorch.load(path, model=network())
    again.destroy()
    assert again(inputs[:2], targets[:2])["out"].shape == (2, 2)


def test_a_file_without_weights_fits_only_the_same_model(path, network, trainer, losses):
    model = trainer(seed=6)
    losses(model)
    model.save(path, export_model=False)
    with pytest.raises(AssertionError, match="export_model=False"):
        poptorch.load(path)
    module = network()
    module.load_state_dict(model.state_dict())
    again = trainer(module, seed=6)
    again.loadExecutable(path)
    assert again.isCompiled()
    assert again.engine.record.compilations == 0
    assert losses(again) == losses(model)


def test_a_loaded_program_uses_the_models_optimizer(path, network, inputs, targets, trainer, losses):
    trainer(kind="SGD").compileAndExport(path, inputs, targets, export_model=False)
    module = network()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.0)
    again = poptorch.trainingModel(module, optimizer=optimizer)
    again.loadExecutable(path)
    before = module.layer.weight.detach().clone()
    losses(again)
    assert torch.equal(module.layer.weight, before)
    assert optimizer.state_dict()["ipu_param"]["scaledLearningRate0___specific___layer.bias"].item() == 0.0


def test_loading_into_a_compiled_model_is_refused(path, inputs, targets, trainer):
    model = trainer()
    model.compileAndExport(path, inputs, targets)
    with pytest.raises(poptorch.Error, match=r"already compiled.*destroy\(\)"):
        model.loadExecutable(path)
    model.destroy()
    model.loadExecutable(path)
    assert model.isCompiled()


def test_an_executable_of_another_model_is_refused(path, network, inputs, targets, trainer):
    trainer().compileAndExport(path, inputs, targets)
    with pytest.raises(poptorch.Error, match="contains a model for training, but this model is for inference"):
        poptorch.inferenceModel(network()).loadExecutable(path)
    for module in (network(width=5), nn.Linear(3, 2)):
        with pytest.raises(poptorch.Error, match="contains another model"):
            trainer(module).loadExecutable(path)
        with pytest.raises(poptorch.Error, match="contains another model"):
            poptorch.load(path, model=module)
    with pytest.raises(poptorch.Error, match="compiled into the program"):
        trainer(kind="SGD").loadExecutable(path)
