"""A wrapped model cannot be lost: no method returns the bare module in its place."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch
from pilotage.errors import LostModelError

pytestmark = pytest.mark.slow


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.drop = nn.Dropout(1.0)

    def forward(self, x, y=None):
        out = self.drop(self.layer(x))
        return out if y is None else (out, functional.mse_loss(out, y))

    def frozen(self):
        for parameter in self.parameters():
            parameter.requires_grad_(False)
        return self


X, Y = torch.ones(2, 3), torch.zeros(2, 2)


@pytest.fixture(params=["training", "inference"])
def model(request):
    torch.manual_seed(0)
    module = Network()
    return poptorch.trainingModel(module) if request.param == "training" else poptorch.inferenceModel(module)


@pytest.fixture(params=[True, False], ids=["compiled", "new"])
def prepared(request, model):
    if request.param:
        model(X, Y)
    return model


MOVES = {
    "to": [("cpu",), (torch.device("cpu"),), (torch.float16,)],
    "cpu": [()],
    "cuda": [(), (0,)],
    "xpu": [()],
    "ipu": [()],
    "hpu": [()],
    "to_empty": [("cpu",)],
}


@pytest.mark.parametrize(("method", "args"), [(name, args) for name, calls in MOVES.items() for args in calls])
def test_moving_a_wrapped_model_raises_with_the_remedy(prepared, method, args):
    before = prepared.model.layer.weight.dtype
    with pytest.raises(LostModelError, match=rf"\.{method}\(\) was called on a wrapped model.*before it is wrapped"):
        getattr(prepared, method)(*args)
    assert prepared.model.layer.weight.dtype == before


def test_moving_raises_a_runtime_error_and_the_model_still_runs(prepared):
    with pytest.raises(RuntimeError):
        prepared = prepared.to("cpu")
    prepared(X, Y)
    assert isinstance(prepared, poptorch.PoplarExecutor)


TYPES = {
    "half": ((), torch.float16),
    "float": ((), torch.float32),
    "double": ((), torch.float64),
    "bfloat16": ((), torch.bfloat16),
    "type": ((torch.float16,), torch.float16),
}


@pytest.mark.parametrize("method", TYPES)
def test_a_new_model_changes_the_type_of_its_weights_and_stays_wrapped(model, method):
    args, expected = TYPES[method]
    assert getattr(model, method)(*args) is model
    assert model.model.layer.weight.dtype == expected


@pytest.mark.parametrize("method", TYPES)
def test_a_compiled_model_refuses_another_type(model, method):
    model(X, Y)
    args, _ = TYPES[method]
    with pytest.raises(LostModelError, match=rf"\.{method}\(\).*already compiled"):
        getattr(model, method)(*args)
    assert model.model.layer.weight.dtype == torch.float32
    model(X, Y)


def test_a_wrapper_converted_to_half_runs_in_half():
    module = nn.Linear(3, 2)
    model = poptorch.inferenceModel(module).half()
    out = model(X.half())
    assert out.dtype == torch.float16
    assert torch.equal(out, module(X.half()).detach())


FLUENT = {
    "requires_grad_": (True,),
    "apply": (lambda part: None,),
    "share_memory": (),
    "frozen": (),
    "train": (),
    "eval": (),
}


@pytest.mark.parametrize("method", FLUENT)
def test_a_method_that_returns_the_module_returns_the_wrapper(prepared, method):
    assert getattr(prepared, method)(*FLUENT[method]) is prepared


def test_methods_that_return_something_else_are_passed_on(model):
    assert model.get_submodule("layer") is model.model.layer
    assert model.zero_grad() is None
    assert next(iter(model.children())) is model.model.layer


def test_changing_the_mode_of_the_wrapper_captures_the_model_again():
    torch.manual_seed(0)
    module = Network()
    model = poptorch.inferenceModel(module)
    assert model(X).abs().max().item() == 0.0
    assert model.eval() is model
    assert (module.training, module.drop.training, model.training) == (False, False, False)
    assert torch.equal(model(X), module.layer(X).detach())
    model.train()
    assert module.training
    assert model(X).abs().max().item() == 0.0


def test_a_trainer_that_changes_its_mode_keeps_the_optimizer_state():
    torch.manual_seed(0)
    module, twin = nn.Linear(3, 2), nn.Linear(3, 2)
    twin.load_state_dict(module.state_dict())

    class Loss(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x, y):
            return functional.mse_loss(self.layer(x), y)

    optimizer = poptorch.optim.Adam(module.parameters(), lr=0.1)
    reference = torch.optim.Adam(twin.parameters(), lr=0.1)
    trainer = poptorch.trainingModel(Loss(module), optimizer=optimizer)
    for step in range(6):
        if step % 2:
            trainer.eval()
            assert optimizer.state_dict()["ipu_state"]["Step___layer.weight"].item() == step
        else:
            trainer.train()
        trainer(X, Y)
        reference.zero_grad()
        functional.mse_loss(twin(X), Y).backward()
        reference.step()
    torch.testing.assert_close(module.weight, twin.weight, rtol=0, atol=1e-7)
