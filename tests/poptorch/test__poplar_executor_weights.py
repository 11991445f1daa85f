"""Copying weights between the host and the device."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x, y=None):
        out = self.norm(self.layer(x))
        return out if y is None else (out, functional.mse_loss(out, y))


X, Y = torch.linspace(-1, 1, 12).reshape(4, 3) ** 3, torch.linspace(0, 1, 8).reshape(4, 2)


def training(module, lr=0.1):
    return poptorch.trainingModel(module, optimizer=poptorch.optim.SGD(module.parameters(), lr=lr))


@pytest.fixture(scope="module")
def expected():
    """The network after two steps in plain PyTorch."""
    twin = Network()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        twin(X, Y)[1].backward()
        optimizer.step()
    return {name: tensor.clone() for name, tensor in twin.state_dict().items()}


def loaded(data):
    return torch.load(io.BytesIO(data), weights_only=False).state_dict()


def saved(module):
    file = io.BytesIO()
    torch.save(module, file)
    return file.getvalue()


WAYS = {
    "state_dict": lambda m, t: m.state_dict(),
    "state_dict of the wrapper": lambda m, t: t.state_dict(),
    "attributes": lambda m, t: {
        "layer.weight": m.layer.weight,
        "layer.bias": m.layer.bias,
        "norm.weight": m.norm.weight,
        "norm.bias": m.norm.bias,
        "norm.running_mean": m.norm.running_mean,
        "norm.running_var": m.norm.running_var,
        "norm.num_batches_tracked": m.norm.num_batches_tracked,
    },
    "parameters and buffers": lambda m, t: dict([*m.named_parameters(), *m.named_buffers()]),
    "the tables": lambda m, t: {
        f"{name}.{key}": tensor
        for name, part in m.named_children()
        for key, tensor in {**part._parameters, **part._buffers}.items()
    },
    "data": lambda m, t: {name: tensor.data for name, tensor in m.state_dict(keep_vars=True).items()},
    "numpy": lambda m, t: {n: torch.from_numpy(p.detach().numpy()) for n, p in m.state_dict(keep_vars=True).items()},
    "a deep copy": lambda m, t: copy.deepcopy(m).state_dict(),
    "a copy": lambda m, t: copy.copy(m).state_dict(),
    "pickle": lambda m, t: pickle.loads(pickle.dumps(m)).state_dict(),
    "torch.save": lambda m, t: loaded(saved(m)),
    "load_state_dict elsewhere": lambda m, t: _elsewhere(m),
    "copyWeightsToHost": lambda m, t: t.copyWeightsToHost() or m.state_dict(),
}


def _elsewhere(module):
    other = Network()
    other.load_state_dict(module.state_dict())
    return other.state_dict()


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_reading_the_module_shows_the_trained_weights(way, expected):
    module = Network()
    model = training(module)
    for _ in range(2):
        model(X, Y)
    found = WAYS[way](module, model)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name].detach(), tensor, rtol=0, atol=1e-6)


def test_the_trained_module_runs_in_plain_pytorch(expected):
    module = Network()
    model = training(module)
    for _ in range(2):
        model(X, Y)
    native = Network()
    native.load_state_dict(expected)
    torch.testing.assert_close(module.eval()(X), native.eval()(X), rtol=0, atol=1e-6)


def test_reading_between_calls_does_not_disturb_training(expected):
    module = Network()
    model = training(module)
    model(X, Y)
    sums = [parameter.sum().item() for parameter in module.parameters()]
    model(X, Y)
    assert [parameter.sum().item() for parameter in module.parameters()] != sums
    for name, tensor in expected.items():
        torch.testing.assert_close(module.state_dict()[name], tensor, rtol=0, atol=1e-6)


def test_weights_are_fetched_once_and_only_if_they_are_newer():
    module = Network()
    model = training(module)
    assert model.copyWeightsToHostIfNeeded() is False
    model(X, Y)
    assert model.copyWeightsToHostIfNeeded() is True
    assert model.copyWeightsToHostIfNeeded() is False
    model(X, Y)
    module.state_dict()
    assert model.copyWeightsToHostIfNeeded() is False


def test_neither_the_class_of_the_module_nor_of_its_tensors_changes():
    module = Network()
    model = training(module)
    model(X, Y)
    module.state_dict()
    assert type(module) is Network
    assert {type(parameter) for parameter in module.parameters()} == {nn.Parameter}
    assert {type(buffer) for buffer in module.buffers()} == {torch.Tensor}
    assert {type(tensor) for tensor in module.state_dict().values()} == {torch.Tensor}


@pytest.mark.slow
def test_a_saved_state_loads_without_pilotage(tmp_path):
    module = Network()
    training(module)(X, Y)
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    program = (
        "import sys, torch; sys.modules.update(pilotage=None, poptorch=None); "
        f"weights = torch.load({str(tmp_path / 'weights.pt')!r}); "
        "print(sorted(weights), {type(each).__name__ for each in weights.values()})"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == f"{sorted(module.state_dict())} {{'Tensor'}}"


# From the host to the device


def zero(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()


def test_edits_on_the_host_reach_a_training_device_only_when_they_are_sent():
    module = Network()
    model = training(module, lr=0.0)
    before = model(X, Y)[0]
    zero(module)
    assert torch.equal(model(X, Y)[0], before)
    zero(module)
    model.copyWeightsToDevice()
    assert model(X, Y)[0].abs().max().item() == 0.0


def test_edits_on_the_host_reach_an_inference_device_only_when_they_are_sent():
    module = Network().eval()
    model = poptorch.inferenceModel(module)
    before = model(X)
    zero(module)
    assert torch.equal(model(X), before)
    model.copyWeightsToDevice()
    assert model(X).abs().max().item() == 0.0


@pytest.mark.parametrize("wrap", ["training", "inference"])
def test_a_loaded_state_reaches_the_device_at_once(wrap):
    module = Network().eval()
    model = training(module, lr=0.0) if wrap == "training" else poptorch.inferenceModel(module)
    run = (lambda: model(X, Y)[0]) if wrap == "training" else (lambda: model(X))
    run()
    other = Network().eval()
    zero(other)
    result = model.load_state_dict(other.state_dict())
    assert str(result) == "<All keys matched successfully>"
    assert run().abs().max().item() == 0.0
    assert torch.equal(module.layer.weight, other.layer.weight)


def test_a_state_can_be_loaded_before_the_first_call():
    module, other = Network().eval(), Network().eval()
    zero(other)
    model = poptorch.inferenceModel(module)
    model.load_state_dict(other.state_dict())
    assert model(X).abs().max().item() == 0.0


def test_a_partial_state_is_refused_unless_it_may_be_partial():
    module = Network().eval()
    model = poptorch.inferenceModel(module)
    model(X)
    part = {"layer.bias": torch.ones(2)}
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(part)
    result = model.load_state_dict(part, strict=False)
    assert "layer.weight" in result.missing_keys
    assert torch.equal(model(X), module(X).detach())


# Buffers


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("shift", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count, x + self.shift


def test_buffers_that_inference_changes_come_back_only_on_request():
    module = Counting()
    model = poptorch.inferenceModel(module)
    for _ in range(2):
        model(torch.zeros(1))
    assert module.count.item() == 0.0
    model.copyWeightsToHost()
    assert module.count.item() == 2.0


def test_only_named_buffers_are_sent():
    module = Counting()
    model = poptorch.inferenceModel(module, poptorch.Options().updatableNamedBuffers(["shift"]))
    model(torch.zeros(1))
    module.shift.fill_(5.0)
    module.count.fill_(100.0)
    assert [each.item() for each in model(torch.zeros(1))] == [2.0, 0.0]
    model.copyNamedBuffersToDevice()
    assert [each.item() for each in model(torch.zeros(1))] == [3.0, 5.0]


def test_without_names_no_buffers_can_be_sent():
    model = poptorch.inferenceModel(Counting())
    model(torch.zeros(1))
    with pytest.raises(poptorch.Error, match="updatableNamedBuffers"):
        model.copyNamedBuffersToDevice()


def test_unknown_buffer_names_fail_at_the_first_call():
    model = poptorch.inferenceModel(Counting(), poptorch.Options().updatableNamedBuffers(["shift", "wrong"]))
    with pytest.raises(poptorch.Error, match="wrong"):
        model(torch.zeros(1))


@pytest.mark.parametrize("broadcast", [True, False])
@pytest.mark.parametrize("train", [True, False])
def test_replicas_normalise_their_own_batches(broadcast, train):
    module = nn.Sequential(nn.BatchNorm1d(3)).train(train)
    options = poptorch.Options().replicationFactor(2).broadcastBuffers(broadcast)
    expected = torch.cat([copy.deepcopy(module)(part) for part in X.chunk(2)])
    torch.testing.assert_close(poptorch.inferenceModel(module, options)(X), expected.detach(), rtol=0, atol=1e-6)


def test_each_replica_keeps_its_own_buffers_and_those_of_the_first_are_fetched():
    module = nn.BatchNorm1d(3)
    options = poptorch.Options().replicationFactor(2).broadcastBuffers(False)
    model = poptorch.inferenceModel(module, options)
    twin = copy.deepcopy(module)
    for _ in range(3):
        model(X)
        twin(X[:2])
    model.copyWeightsToHost()
    torch.testing.assert_close(dict(module.state_dict()), dict(twin.state_dict()), rtol=0, atol=1e-6)


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x, y=None):
        out = self.layer(x)
        return out if y is None else (out, nn.functional.mse_loss(out, y))


READS = {
    "calling the module": lambda module: module(X),
    "using its parameters": lambda module: [parameter.sum() for parameter in module.parameters()],
    "printing one": lambda module: str(module.layer.weight),
    "data": lambda module: module.layer.weight.data.sum(),
    "state_dict": lambda module: module.state_dict(),
    "another wrapper": lambda module: poptorch.inferenceModel(module)(X),
}


@pytest.mark.parametrize("read", READS)
def test_implicit_copies_of_weights_go_through_the_models_method(read):
    module = Trained()
    model = poptorch.trainingModel(module)
    copies = []
    copy_weights = model.copyWeightsToHost
    model.copyWeightsToHost = lambda: (copies.append(1), copy_weights())
    for _ in range(2):
        for _ in range(2):
            model(X, torch.zeros(4, 2))
        assert copies == []
        for _ in range(2):
            READS[read](module)
        assert copies == [1]
        copies.clear()


def test_copying_weights_to_the_device_undoes_unread_training(caplog):
    module = Trained()
    before = module.layer.weight.detach().clone()
    model = poptorch.trainingModel(module, optimizer=poptorch.optim.SGD(module.parameters(), lr=0.1))
    model(X, torch.zeros(4, 2))
    model.copyWeightsToDevice()
    model.setOptimizer(poptorch.optim.SGD(module.parameters(), lr=0.0))
    model(X, torch.zeros(4, 2))
    assert torch.equal(module.layer.weight, before)
    assert "copyWeightsToDevice() replaces weights that the device has trained" in caplog.text
