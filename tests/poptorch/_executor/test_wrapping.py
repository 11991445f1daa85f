"""Wrapping modules for training and inference, together and one after the other."""

from __future__ import annotations

import copy
import gc
import re
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, y=None):
        out = self.layer(x)
        return out if y is None else (out, functional.mse_loss(out, y))


class WithLoss(nn.Module):
    """As in many programs: a model inside a module that adds the loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.loss = nn.MSELoss()

    def forward(self, x, y):
        out = self.model(x)
        return out, self.loss(out, y)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network()


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return torch.randn(4, 3), torch.randn(4, 2)


def sgd(module, lr=0.1):
    return poptorch.optim.SGD(module.parameters(), lr=lr)


# What can be wrapped


def test_a_function_of_tensors_can_be_wrapped_for_inference():
    def scaled(x, factor=2.0):
        return x * factor

    model = poptorch.inferenceModel(scaled)
    assert model(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(poptorch.Error, match="Value mismatch for factor"):
        model(torch.ones(2), factor=3.0)


def test_a_method_and_a_callable_object_can_be_wrapped():
    class Shift:
        def __init__(self):
            self.by = 3.0

        def __call__(self, x):
            return x + self.by

        def back(self, x):
            return x - self.by

    assert poptorch.inferenceModel(Shift())(torch.ones(1)).item() == 4.0
    assert poptorch.inferenceModel(Shift().back)(torch.ones(1)).item() == -2.0


def test_a_training_wrapper_can_be_wrapped_for_inference(network, batch):
    trainer = poptorch.trainingModel(network, optimizer=sgd(network))
    model = poptorch.inferenceModel(trainer)
    assert model.model is network
    trainer(*batch)
    assert torch.equal(model(batch[0]), network(batch[0]).detach())


@pytest.mark.parametrize("wrap", [poptorch.trainingModel, poptorch.inferenceModel])
def test_anything_else_is_refused(wrap):
    with pytest.raises(poptorch.Error, match=r"a torch\.nn\.Module or a function"):
        wrap(3)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("wrap", [poptorch.trainingModel, poptorch.inferenceModel])
def test_a_scripted_module_is_refused(wrap):
    with pytest.raises(poptorch.Error, match="Wrap the module that it was scripted from"):
        wrap(torch.jit.script(nn.Linear(1, 1)))


@pytest.mark.parametrize("wrap", [poptorch.trainingModel, poptorch.inferenceModel])
@pytest.mark.parametrize("options", [{}, 3, "fast", poptorch.Options().Training])
def test_options_of_another_type_are_refused(wrap, options, network):
    with pytest.raises(poptorch.Error, match="Invalid type"):
        wrap(network, options)


def test_inference_refuses_gradient_accumulation(network):
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    with pytest.raises(
        poptorch.Error, match=r"You must set poptorch.Options\(\).Training.gradientAccumulation to 1 or leave"
    ):
        poptorch.inferenceModel(network, options)


def test_buffers_of_another_class_are_refused_in_training():
    class Own(torch.Tensor):
        pass

    module = nn.Linear(1, 1)
    module.register_buffer("own", torch.ones(1).as_subclass(Own))
    with pytest.raises(poptorch.Error, match=r"All buffers must be an instance of torch\.Tensor"):
        poptorch.trainingModel(module)


def test_parameters_of_a_subclass_are_trained_and_keep_their_class(batch):
    class Own(nn.Parameter):
        pass

    module = Network()
    module.layer.weight = Own(module.layer.weight.detach().clone())
    twin = copy.deepcopy(module)
    poptorch.trainingModel(module, optimizer=sgd(module))(*batch)
    twin(*batch)[1].backward()
    expected = twin.layer.weight.detach() - 0.1 * twin.layer.weight.grad
    assert type(module.layer.weight) is Own
    torch.testing.assert_close(module.layer.weight.detach(), expected, rtol=0, atol=1e-7)


# What becomes of the options


@pytest.mark.parametrize("wrap", [poptorch.trainingModel, poptorch.inferenceModel])
def test_the_options_are_frozen_and_the_wrapper_has_its_own_copy(wrap, network):
    options = poptorch.Options().deviceIterations(2)
    model = wrap(network, options)
    for change in (lambda o: o.deviceIterations(3), lambda o: o.Training.gradientAccumulation(2)):
        for frozen in (options, model.options):
            with pytest.raises(AttributeError, match="Can't modify frozen Options"):
                change(frozen)
    assert model.options is not options
    assert options.defaultOutputMode()
    assert not model.options.defaultOutputMode()


def test_the_default_output_mode_depends_on_training_or_inference(network):
    options = poptorch.Options()
    assert poptorch.trainingModel(network, options).options.output_mode == poptorch.OutputMode.Final
    assert poptorch.inferenceModel(network, options).options.output_mode == poptorch.OutputMode.All
    chosen = poptorch.Options().outputMode(poptorch.OutputMode.Sum)
    assert poptorch.inferenceModel(network, chosen).options.output_mode == poptorch.OutputMode.Sum


def test_without_options_the_defaults_are_used(network):
    assert poptorch.inferenceModel(network).options.device_iterations == 1


def test_without_an_optimizer_plain_sgd_is_used(network, batch):
    twin = copy.deepcopy(network)
    poptorch.trainingModel(network)(*batch)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.01)
    twin(*batch)[1].backward()
    optimizer.step()
    torch.testing.assert_close(dict(network.state_dict()), dict(twin.state_dict()), rtol=0, atol=1e-7)


# Wrapping again


def refused():
    return pytest.raises(
        RuntimeError,
        match=re.escape(
            "Model has already been wrapped in 'poptorch.trainingModel'. Call model.destroy() on the model to unwrap "
            "before wrapping again."
        ),
    )


@pytest.mark.parametrize("compile_first", [True, False])
def test_a_model_is_trained_by_one_wrapper_at_a_time(network, batch, compile_first):
    trainer = poptorch.trainingModel(network)
    if compile_first:
        trainer(*batch)
    for again in (network, trainer):
        with refused():
            poptorch.trainingModel(again)


def test_a_model_can_be_wrapped_again_after_destroy(network, batch):
    first = poptorch.trainingModel(network, optimizer=sgd(network))
    first(*batch)
    trained = copy.deepcopy(network)
    first.destroy()
    second = poptorch.trainingModel(network, optimizer=sgd(network))
    second(*batch)
    trained(*batch)[1].backward()
    torch.optim.SGD(trained.parameters(), lr=0.1).step()
    torch.testing.assert_close(dict(network.state_dict()), dict(trained.state_dict()), rtol=0, atol=1e-7)
    with refused():
        poptorch.trainingModel(network)


def test_a_deleted_wrapper_leaves_the_trained_weights_and_allows_another(network, batch):
    before = copy.deepcopy(network)
    gc.disable()
    try:
        trainer = poptorch.trainingModel(network, optimizer=sgd(network))
        trainer(*batch)
        del trainer
        poptorch.trainingModel(network)
    finally:
        gc.enable()
    before(*batch)[1].backward()
    torch.optim.SGD(before.parameters(), lr=0.1).step()
    torch.testing.assert_close(dict(network.state_dict()), dict(before.state_dict()), rtol=0, atol=1e-7)


def test_a_model_can_have_many_inference_wrappers(network, batch):
    models = [poptorch.inferenceModel(network) for _ in range(3)]
    assert all(torch.equal(model(batch[0]), network(batch[0]).detach()) for model in models)


# Training and inference side by side


@pytest.mark.parametrize("inner", [True, False])
def test_inference_follows_the_training_of_the_same_weights(network, batch, inner):
    module = WithLoss(network) if inner else network
    trainer = poptorch.trainingModel(module, optimizer=sgd(module))
    model = poptorch.inferenceModel(network)
    twin = copy.deepcopy(module)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    seen = []
    for _ in range(3):
        out = model(batch[0])
        expected = (twin.model if inner else twin)(batch[0]).detach()
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)
        seen.append(out)
        trainer(*batch)
        optimizer.zero_grad()
        twin(*batch)[1].backward()
        optimizer.step()
    assert not torch.equal(seen[0], seen[2])


def test_inference_follows_training_without_reading_the_module(network, batch):
    trainer = poptorch.trainingModel(network, optimizer=sgd(network))
    model = poptorch.inferenceModel(network)
    model.compile(batch[0])
    before = model(batch[0])
    trainer(*batch)
    trainer.detachFromDevice()
    assert not torch.equal(model(batch[0]), before)
    trainer(*batch)
    trainer.destroy()
    assert torch.equal(model(batch[0]), network(batch[0]).detach())


class Adversary(nn.Module):
    def __init__(self, generator, critic, for_generator):
        super().__init__()
        self.generator = generator
        self.critic = critic
        self.for_generator = for_generator

    def forward(self, noise, real):
        made = self.generator(noise)
        ones, zeros = torch.ones(4, 1), torch.zeros(4, 1)
        if self.for_generator:
            return functional.binary_cross_entropy_with_logits(self.critic(made), ones)
        wrong = functional.binary_cross_entropy_with_logits(self.critic(made.detach()), zeros)
        right = functional.binary_cross_entropy_with_logits(self.critic(real), ones)
        return poptorch.identity_loss(wrong + right, "none")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_two_trainers_of_submodules_of_one_model_take_turns(kind):
    torch.manual_seed(0)
    parts = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    twins = copy.deepcopy(parts)
    trainers = []
    for position, mine in enumerate(parts):
        optimizer = getattr(poptorch.optim, kind)(mine.parameters(), lr=0.05)
        trainers.append(poptorch.trainingModel(Adversary(*parts, for_generator=position == 0), optimizer=optimizer))
    theirs = [
        (Adversary(*twins, for_generator=position == 0), getattr(torch.optim, kind)(twin.parameters(), lr=0.05))
        for position, twin in enumerate(twins)
    ]
    sampler = poptorch.inferenceModel(parts[0])
    for _ in range(4):
        noise, real = torch.randn(4, 2), torch.randn(4, 3)
        for trainer, (module, optimizer) in reversed(list(zip(trainers, theirs, strict=True))):
            optimizer.zero_grad()
            loss = module(noise, real)
            loss.backward()
            optimizer.step()
            torch.testing.assert_close(trainer(noise, real), loss.detach(), rtol=0, atol=1e-6)
        torch.testing.assert_close(sampler(noise), twins[0](noise).detach(), rtol=0, atol=1e-6)
    for mine, other in zip(parts, twins, strict=True):
        torch.testing.assert_close(dict(mine.state_dict()), dict(other.state_dict()), rtol=0, atol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_a_deleted_model_frees_its_device_at_once(training, tier, network, batch):
    options = poptorch.Options().runOn(tier=tier)
    model = poptorch.trainingModel(network, options) if training else poptorch.inferenceModel(network, options)
    model(*batch)
    # The first reading of the trained weights, for which the device state is kept.
    network.layer.weight.clone()
    held = (model, model.engine, model.engine.session, model.engine.session.state, model.engine.session.strategy)
    references = [weakref.ref(each) for each in held]
    gc.collect()
    gc.disable()
    try:
        del model, held
        assert [reference() for reference in references] == [None] * len(references)
    finally:
        gc.enable()


def test_inference_with_active_dropout_is_reported_once_and_can_still_be_evaluated(caplog):
    caplog.set_level("WARNING", "pilotage")
    module, x = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1)), torch.ones(4, 8)
    model = poptorch.inferenceModel(module, poptorch.Options().showCompilationProgressBar(False))
    for _ in range(3):
        model(x)
    model.eval()
    torch.testing.assert_close(model(x), module[0](x).detach())
    assert len([record for record in caplog.records if "is in training mode" in record.getMessage()]) == 1


BATCH = torch.randn(4, 3), torch.randn(4, 2)


def test_the_module_itself_can_be_destroyed_and_wrapped_again():
    module = Network()
    model = poptorch.trainingModel(module)
    model(*BATCH)
    trained = module.layer.weight.detach().clone()
    module.destroy()
    assert not model.isCompiled()
    torch.nn.init.ones_(module.layer.weight)
    again = poptorch.trainingModel(module, optimizer=torch.optim.SGD(module.parameters(), lr=0.0))
    out, _ = again(*BATCH)
    torch.testing.assert_close(out, module(BATCH[0]).detach())
    assert not torch.equal(module.layer.weight, trained)
    again.destroy()
    poptorch.trainingModel(again)
    del again, model
    gc.collect()
    module.destroy()


def test_a_copy_of_a_wrapped_module_is_not_wrapped(tmp_path):
    module = Network()
    model = poptorch.trainingModel(module)
    model(*BATCH)
    copied = copy.deepcopy(module)
    torch.save(module, tmp_path / "module.pt")
    loaded = torch.load(tmp_path / "module.pt", weights_only=False)
    for other in (copied, loaded):
        other.destroy()
        assert torch.equal(other.layer.weight, module.layer.weight)
        poptorch.trainingModel(other)
    assert model.isCompiled()


def test_a_modules_own_destroy_stays():
    module = Network()
    module.destroy = lambda: "mine"
    poptorch.trainingModel(module)
    assert module.destroy() == "mine"
