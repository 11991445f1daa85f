"""Loaded models continue where they were saved."""

from __future__ import annotations

from collections import namedtuple

import pytest
import torch

import poptorch

pytestmark = pytest.mark.slow

Scores = namedtuple("Scores", ["values", "best"])


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("with_class", [True, False])
def test_training_resumes_bit_by_bit_with_dropout_and_optimizer(path, seed, with_class, network, trainer, losses):
    model = trainer(seed=seed)
    losses(model)
    model.save(path)
    expected = losses(model)
    torch.manual_seed(999)
    again = poptorch.load(path, model=network() if with_class else None)
    assert losses(again) == expected
    assert torch.equal(again.model.layer.weight, model.model.layer.weight)
    assert again.model.count.item() == 6.0


def test_without_the_random_state_only_the_random_numbers_differ(path, trainer, losses):
    model = trainer(seed=5)
    losses(model)
    model.save(path, save_rng_state=False)
    first = losses(model, 1)
    again = poptorch.load(path)
    assert torch.equal(again.model.layer.weight, poptorch.load(path).model.layer.weight)
    assert losses(again, 1) != first
    assert losses(poptorch.load(path), 2) == losses(poptorch.load(path), 2)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "LAMB"])
def test_every_optimizer_resumes(path, kind, trainer, losses):
    model = trainer(kind=kind, seed=1)
    losses(model, 2)
    model.save(path)
    assert losses(poptorch.load(path), 2) == losses(model, 2)


def test_the_saved_learning_rate_is_the_one_last_set(path, network, inputs, targets, losses):
    module = network()
    optimizer = poptorch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, optimizer=optimizer)
    model.compile(inputs, targets)
    optimizer.param_groups[0]["lr"] = 0.0
    model.setOptimizer(optimizer)
    model.save(path)
    again = poptorch.load(path)
    before = again.model.layer.weight.detach().clone()
    losses(again)
    assert torch.equal(again.model.layer.weight, before)


def test_a_loaded_trainer_takes_an_optimizer(path, inputs, targets, trainer, losses):
    model = trainer(kind="SGD")
    model.compile(inputs, targets)
    model.save(path)
    again = poptorch.load(path)
    optimizer = poptorch.optim.SGD(again.model.parameters(), lr=0.0)
    again.setOptimizer(optimizer)
    before = again.model.layer.weight.detach().clone()
    losses(again)
    assert torch.equal(again.model.layer.weight, before)
    assert optimizer.state_dict()["ipu_param"] is not None
    with pytest.raises(poptorch.Error, match="compiled into the program"):
        again.setOptimizer(poptorch.optim.Adam(again.model.parameters(), lr=0.1))


def test_inference_gives_the_same_results(path, network, inputs):
    module = network().eval()
    model = poptorch.inferenceModel(module)
    expected = model(inputs)
    model.save(path)
    again = poptorch.load(path)
    assert torch.equal(again(inputs), expected)
    assert again.isCompiled()
    assert not again.trains


def test_a_loaded_model_can_be_saved_again(path, tmp_path, trainer, losses):
    model = trainer(seed=3)
    losses(model)
    model.save(path)
    second = poptorch.load(path)
    losses(second, 1)
    second.save(tmp_path / "second")
    losses(model, 1)
    assert losses(poptorch.load(tmp_path / "second")) == losses(model)


def test_outputs_keep_their_structure(path, inputs):
    model = poptorch.inferenceModel(lambda x: [Scores(x, x.argmax(1)), {"three": 3, "none": None}])
    expected = model(inputs)
    model.save(path)
    (scores, table) = poptorch.load(path)(inputs)
    assert type(scores) is Scores
    assert torch.equal(scores.best, expected[0].best)
    assert table == {"three": 3, "none": None}


def test_a_loaded_model_checks_calls_like_a_compiled_one(path, inputs, targets, trainer):
    model = trainer()
    model.compile(inputs, targets)
    model.save(path)
    again = poptorch.load(path)
    with pytest.raises(poptorch.Error, match=r"expected torch\.Size\(\[4, 3\]\) but got torch\.Size\(\[2, 3\]\)"):
        again(inputs[:2], targets[:2])
    with pytest.raises(poptorch.Error, match=r"Value mismatch for factor: expected 2\.0 but got 3\.0"):
        again(inputs, targets, factor=3.0)
    with pytest.raises(poptorch.Error, match="Mandatory parameter x missing"):
        again(y=targets)
