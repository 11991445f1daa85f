import json

import pytest
import torch
from torch import nn

import poptorch
from poptorch.enums import MatMulSerializationMode
from poptorch.poptorch_core import Error

X = torch.tensor([[1.0, -2.0], [3.0, 4.5]])


@pytest.mark.parametrize(
    ("reduction", "expected"), [("sum", X.sum()), ("mean", X.mean()), ("none", X)], ids=["sum", "mean", "none"]
)
def test_an_identity_loss_reduces_without_a_wrapper_too(reduction, expected):
    assert torch.equal(poptorch.identity_loss(X, reduction), expected)
    assert torch.equal(poptorch.identity_loss(X, reduction=reduction), expected)


@pytest.mark.parametrize("reduction", ["max", None, ["sum"]])
def test_other_reductions_are_refused(reduction):
    with pytest.raises(AssertionError, match="Unsupported reduction type!"):
        poptorch.identity_loss(X, reduction)


@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_training_starts_from_the_identity_loss(compiled, reduction, tier):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))

        def forward(self, x):
            return poptorch.identity_loss(5 * (self.weight * x) ** 2, reduction=reduction)

    model, eager = Model(), Model()
    loss = eager(X)
    loss.backward(torch.ones_like(loss))
    run = compiled(model, training=True, tier=tier)
    assert torch.equal(run(X), loss)
    run.executor.fetch_weights()
    assert torch.allclose(model.weight, eager.weight - 0.1 * eager.weight.grad)


def test_nop_and_available_memory_change_nothing(compiled):
    class Model(nn.Module):
        def forward(self, x):
            return poptorch.set_available_memory(poptorch.nop(x) @ x, 0.3)

    assert torch.equal(compiled(Model())(X), X @ X)


@pytest.mark.parametrize("call", [lambda: poptorch.nop([X]), lambda: poptorch.set_available_memory("x", 0.3)])
def test_only_tensors_are_accepted(call):
    with pytest.raises(Error, match=r"takes a torch\.Tensor"):
        call()


@pytest.mark.parametrize("mode", list(MatMulSerializationMode))
def test_a_serialized_product_equals_the_product(compiled, mode):
    class Model(nn.Module):
        def forward(self, x, y):
            return poptorch.serializedMatMul(x, y, mode, factor=2, keep_precision=True)

    assert torch.equal(compiled(Model())(X, X.T), X @ X.T)


@pytest.mark.parametrize(
    "arguments",
    [{"mode": "input_channels"}, {"factor": 1.5}, {"keep_precision": 1}],
    ids=lambda arguments: next(iter(arguments)),
)
def test_a_serialized_product_checks_its_arguments(arguments):
    with pytest.raises(AssertionError, match=f"as {next(iter(arguments))}"):
        poptorch.serializedMatMul(X, X, **{"mode": MatMulSerializationMode.Disabled, **arguments})


def test_recomputation_checkpoints_return_their_arguments():
    y = X + 1
    assert poptorch.recomputationCheckpoint(X) is X
    assert poptorch.recomputationCheckpoint(X, y) == (X, y)
    pair, both = (X, y), [X, y]
    assert poptorch.recomputationCheckpoint(pair) is pair
    assert poptorch.recomputationCheckpoint(both) is both


@pytest.mark.parametrize("arguments", [(3,), (X, None), ([X, "a"],)])
def test_recomputation_checkpoints_take_only_tensors(arguments):
    with pytest.raises(ValueError, match="takes tensors"):
        poptorch.recomputationCheckpoint(*arguments)


def test_recomputation_checkpoints_compute_parts_of_a_wrapped_model_again():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                x = poptorch.recomputationCheckpoint(torch.sigmoid(torch.tanh(layer(x))))
            return nn.functional.mse_loss(x, torch.ones_like(x))

    counts = {}
    for kind in (None, 0):
        options = poptorch.Options()
        if kind is not None:
            options._Popart.set("autoRecomputation", kind)
        model = poptorch.trainingModel(Model(), options)
        model.compile(X)
        operations = json.loads(model._debugGetPopartIR())["maingraph"]
        counts[kind] = [operation["type"] for operation in operations].count("aten.tanh.default")
    assert counts == {0: 3, None: 6}


def test_training_with_recomputation_checkpoints_gives_the_same_gradients(compiled):
    class Model(nn.Module):
        def __init__(self, checkpoint):
            super().__init__()
            self.checkpoint = checkpoint
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                x = self.checkpoint(torch.tanh(layer(x)))
            return nn.functional.mse_loss(x, torch.ones_like(x))

    model, plain = Model(poptorch.recomputationCheckpoint), Model(lambda x: x)
    plain.load_state_dict(model.state_dict())
    runs = [compiled(each, training=True) for each in (model, plain)]
    for run in runs:
        run(X)
        run.executor.fetch_weights()
    assert all(map(torch.equal, model.parameters(), plain.parameters()))
