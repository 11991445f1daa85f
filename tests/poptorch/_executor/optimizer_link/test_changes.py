"""What may change of an optimizer once its model is compiled, and what may not."""

from __future__ import annotations

import pytest
import torch

import poptorch
from poptorch import optim

pytestmark = pytest.mark.slow


def test_given_attributes_may_change_and_others_are_constant(network, batch, training):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1, weight_decay=0.0)
    model = training(module, optimizer)
    model(*batch)
    optimizer.param_groups[0]["weight_decay"] = 0.5
    model.setOptimizer(optimizer)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(poptorch.Error, match=r"momentum from 0\.0 to 0\.9"):
        model.setOptimizer(optimizer)
    model(*batch)


def test_a_constant_can_be_marked_as_variable_and_back(network, batch, training):
    module = network()
    optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.5)
    optimizer.variable_attrs.markAsConstant("momentum")
    optimizer.variable_attrs.markAsVariable("dampening")
    model = training(module, optimizer)
    model(*batch)
    optimizer.param_groups[0]["dampening"] = 0.5
    model.setOptimizer(optimizer)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(poptorch.Error, match="momentum"):
        model.setOptimizer(optimizer)
    with pytest.raises(AssertionError, match="Unknown attribute"):
        optimizer.variable_attrs.markAsVariable("wings")


@pytest.mark.parametrize(
    ("kind", "given", "change", "allowed"),
    [
        ("SGD", {"lr": 0.1}, {"lr": 0.2}, True),
        ("SGD", {"lr": 0.1, "momentum": 0.5}, {"momentum": 0.9}, True),
        ("SGD", {"lr": 0.1}, {"momentum": 0.9}, False),
        ("SGD", {"lr": 0.1, "weight_decay": 0.1}, {"weight_decay": 0.2}, True),
        ("SGD", {"lr": 0.1}, {"weight_decay": 0.2}, False),
        ("SGD", {"lr": 0.1, "momentum": 0.5}, {"nesterov": True}, False),
        ("Adam", {"lr": 0.1, "betas": (0.5, 0.6)}, {"betas": (0.7, 0.8)}, False),
        ("Adam", {"lr": 0.1}, {"eps": 1e-3}, False),
        ("Adam", {"lr": 0.1, "eps": 1e-4}, {"eps": 1e-3}, True),
        ("AdamW", {"lr": 0.1}, {"weight_decay": 0.5}, False),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.2}, {"weight_decay": 0.5}, True),
        ("RMSprop", {"lr": 0.1, "alpha": 0.5}, {"alpha": 0.6}, False),
    ],
)
def test_default_attributes_of_torch_optimizers_are_constant(kind, given, change, allowed, network, batch, training):
    module = network()
    optimizer = getattr(torch.optim, kind)(module.parameters(), **given)
    model = training(module, optimizer)
    model(*batch)
    optimizer.param_groups[0].update(change)
    if allowed:
        model.setOptimizer(optimizer)
        model(*batch)
    else:
        with pytest.raises(poptorch.Error, match="compiled into the program"):
            model.setOptimizer(optimizer)


def test_another_optimizer_of_the_same_kind_takes_over(network, batch, training, changed_by):
    module = network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model(*batch)
    model.setOptimizer(optim.SGD(module.parameters(), lr=0.0))
    assert not changed_by(model, module)
    assert model.engine.record.compilations == 1


def test_before_compiling_any_optimizer_takes_over(network, batch, training, step_eagerly, assert_same):
    module, twin = network(), network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model.setOptimizer(optim.Adam(module.parameters(), lr=0.05))
    model(*batch)
    step_eagerly(twin, torch.optim.Adam(twin.parameters(), lr=0.05))
    assert_same(module, twin)


@pytest.mark.parametrize(
    "other",
    [
        lambda m: optim.Adam(m.parameters(), lr=0.1),
        lambda m: optim.SGD(m.first.parameters(), lr=0.1),
        lambda m: optim.SGD([{"params": m.first.parameters()}, {"params": m.second.parameters()}], lr=0.1),
    ],
    ids=["kind", "parameters", "groups"],
)
def test_after_compiling_another_kind_of_optimizer_is_refused(other, network, batch, training, changed_by):
    module = network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model(*batch)
    with pytest.raises(poptorch.Error, match="compiled into the program"):
        model.setOptimizer(other(module))
    assert changed_by(model, module)
    model.destroy()
    model.setOptimizer(other(module))
    assert changed_by(model, module)


def test_optimizers_of_other_kinds_are_refused(network, training):
    module = network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    for other in (torch.optim.Adagrad(module.parameters()), torch.optim.Adadelta(module.parameters())):
        with pytest.raises(AssertionError, match="Unsupported optimizer type"):
            model.setOptimizer(other)
        with pytest.raises(AssertionError, match="Unsupported optimizer type"):
            training(network(), other)


def test_inference_has_no_optimizer(network):
    module = network()
    with pytest.raises(poptorch.Error, match="inference"):
        poptorch.inferenceModel(module).setOptimizer(optim.SGD(module.parameters(), lr=0.1))


def test_a_narrow_accumulation_type_is_chosen_before_compiling(network, batch, training):
    module = network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1))
    model(*batch)
    with pytest.raises(ValueError, match="already compiled"):
        model.setOptimizer(optim.SGD(module.parameters(), lr=0.1, accum_type=torch.float16))


def test_a_narrow_accumulation_type_shows_in_the_options_of_the_model(network, batch, training):
    running, post = poptorch.MeanReductionStrategy.Running, poptorch.MeanReductionStrategy.Post
    options = poptorch.Options()
    options.Training.setMeanAccumulationAndReplicationReductionStrategy(post)

    def strategy(model):
        return model.options.Training.meanAccumulationAndReplicationReductionStrategy

    module = network()
    model = training(module, optim.SGD(module.parameters(), lr=0.1, accum_type=torch.float16), options)
    assert strategy(model) == running
    model(*batch)
    model.setOptimizer(optim.SGD(module.parameters(), lr=0.1, accum_type=torch.float16))
    assert options.Training.meanAccumulationAndReplicationReductionStrategy == post
    other = network()
    model = training(other, optim.SGD(other.parameters(), lr=0.1), options)
    assert strategy(model) == post
    model.setOptimizer(optim.SGD(other.parameters(), lr=0.1, accum_type=torch.float16))
    assert strategy(model) == running
