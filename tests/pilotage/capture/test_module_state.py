"""Forward may change the values of a module's state, and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.capture.module_state import ModuleTables
from pilotage.errors import CaptureError


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("average", torch.zeros(4))
        self.register_buffer("nothing", None)

    def touch(self, x):
        """An additional action of forward."""

    def forward(self, x):
        self.touch(x)
        return functional.mse_loss(self.layer(x), torch.zeros(x.shape[0], 3))


def network_that(touch):
    return type("Touching", (Network,), {"touch": touch})()


def removes(self, x):
    del self.average


def removes_a_weight(self, x):
    bias = self.layer.bias
    del self.layer.bias
    self.layer.bias = nn.Parameter(bias.detach())
    del self.layer.bias
    self.layer.register_parameter("bias", None)


REFUSED = {
    "creates the buffer 'extra'": lambda self, x: self.register_buffer("extra", x.mean()),
    "creates the buffer 'nothing'": lambda self, x: setattr(self, "nothing", torch.ones(2)),
    "creates the parameter 'extra'": lambda self, x: setattr(self, "extra", nn.Parameter(torch.ones(2))),
    "creates the part 'more'": lambda self, x: setattr(self, "more", nn.Linear(4, 4)),
    "creates the buffer 'layer.inner'": lambda self, x: self.layer.register_buffer("inner", x.mean()),
    "Buffer average is removed": removes,
    "Parameter layer.bias is removed": removes_a_weight,
    "Parameter layer.weight is reassigned": lambda self, x: setattr(
        self.layer, "weight", nn.Parameter(self.layer.weight * 2)
    ),
    r"Buffer average is reassigned.*self\.average\.copy_.*replaces float32\[4\] by float32\[\]": lambda self, x: (
        setattr(self, "average", x.mean())
    ),
    r"Buffer average is reassigned.*replaces float32\[4\] by float64\[4\]": lambda self, x: setattr(
        self, "average", x.double().mean(dim=0)
    ),
}


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("said", REFUSED)
def test_added_removed_or_retyped_state_is_refused_and_restored(said, tier, fake_tensors, assert_equal):
    module = network_that(REFUSED[said])
    before = {name: (id(tensor), tensor.clone()) for name, tensor in module.state_dict(keep_vars=True).items()}
    parts = [name for name, _ in module.named_modules()]
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), tier=tier)
    with pytest.raises(CaptureError, match=said):
        step(torch.randn(5, 4))
    after = module.state_dict(keep_vars=True)
    assert {name: id(tensor) for name, tensor in after.items()} == {
        name: number for name, (number, _) in before.items()
    }
    assert_equal({name: t.detach() for name, t in after.items()}, {name: t.detach() for name, (_, t) in before.items()})
    assert [name for name, _ in module.named_modules()] == parts
    assert "average" not in vars(module)
    assert module.nothing is None
    assert fake_tensors(module) == []


def creates_a_loss(self, x):
    self.loss, self.activation = nn.MSELoss(), nn.ReLU()
    return self.activation(x).mean()


def assigns_a_parameter_to_itself(self, x):
    self.layer.weight = self.layer.weight.to(x.device)
    assert isinstance(self.layer.weight, nn.Parameter)


@pytest.mark.parametrize("tier", ["graph", "eager"])
@pytest.mark.parametrize("touch", [creates_a_loss, assigns_a_parameter_to_itself])
def test_parts_without_state_may_be_created_and_parameters_assigned_to_themselves(touch, tier, fake_tensors):
    module, twin = network_that(touch), network_that(touch)
    twin.load_state_dict(module.state_dict())
    weight = module.layer.weight
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), tier=tier)
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(2):
        step(torch.ones(5, 4))
        optimizer.zero_grad()
        twin(torch.ones(5, 4)).backward()
        optimizer.step()
    torch.testing.assert_close(module.layer.weight, twin.layer.weight)
    assert module.layer.weight is weight
    assert fake_tensors(module) == []


def test_a_part_without_state_may_not_become_one_with_state():
    module = network_that(lambda self, x: setattr(self, "activation", nn.Linear(4, 4)))
    module.activation = nn.ReLU()
    with pytest.raises(CaptureError, match="creates the part 'activation'"):
        pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))(torch.randn(5, 4))


@pytest.mark.parametrize("tier", ["graph", "eager"])
def test_a_buffer_replaced_by_a_matching_tensor_is_copied_back(tier):
    module = network_that(lambda self, x: setattr(self, "average", self.average * 0.5 + x.mean(dim=0)))
    average = module.average
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1), tier=tier)
    for _ in range(3):
        step(torch.ones(2, 4))
    assert module.average is average
    assert average.tolist() == [1.75] * 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_keep_their_own_list_of_weights(kind, fake_tensors):
    module = kind(4, 3)
    weights = list(module._flat_weights)
    pilotage.inference(module)(torch.randn(5, 2, 4))
    assert all(mine is before for mine, before in zip(module._flat_weights, weights, strict=True))
    assert fake_tensors(module) == []
    module(torch.randn(5, 2, 4))


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
def test_the_older_weight_norm_keeps_its_computed_weight(fake_tensors, assert_equal):
    module = nn.utils.weight_norm(nn.Linear(4, 3))
    weight = module.weight
    batch = torch.randn(5, 4)
    assert_equal(pilotage.inference(module)(batch), module(batch).detach())
    assert fake_tensors(module) == []
    assert weight.shape == (3, 4)


def test_tied_tensors_are_replaced_together_and_come_back():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    module[1].weight = module[0].weight
    original, instead = module[0].weight, torch.zeros(3, 3)
    tables = ModuleTables(module)
    tables.put({id(original): instead})
    assert module[0].weight is instead
    assert module[1].weight is instead
    tables.restore()
    assert module[0].weight is original
    assert module[1].weight is original


def test_the_order_of_the_tables_survives():
    module = Network()
    order = list(module.state_dict())
    step = pilotage.training(module, torch.optim.SGD(module.parameters(), lr=0.1))
    step(torch.randn(5, 4))
    assert list(module.state_dict()) == order
