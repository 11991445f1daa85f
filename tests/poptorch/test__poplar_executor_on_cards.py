"""Behaviour that differs on NVIDIA cards, if there is one."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device."),
]

NETWORKS = {
    "lstm": lambda: nn.LSTM(6, 8, 2, batch_first=True),
    "bidirectional lstm": lambda: nn.LSTM(6, 8, bidirectional=True),
    "gru": lambda: nn.GRU(6, 8, 2, bidirectional=True),
    "rnn": lambda: nn.RNN(6, 8, 2),
}


class Recurrent(nn.Module):
    def __init__(self, network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x):
        outputs, _ = self.network(x)
        return outputs, functional.mse_loss(outputs, torch.ones_like(outputs))


@pytest.fixture(autouse=True)
def strict_float32():
    # Not with monkeypatch: torch computes these names, and monkeypatch would remove them afterwards.
    settings = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [each.allow_tf32 for each in settings]
    for each in settings:
        each.allow_tf32 = False
    yield
    for each, value in zip(settings, before, strict=True):
        each.allow_tf32 = value


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_recurrent_networks_train_on_a_card_as_eager_does_there(make):
    torch.manual_seed(0)
    module = Recurrent(make())
    plain = copy.deepcopy(module).cuda()
    x = torch.randn(5, 4, 6)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    model = poptorch.trainingModel(module, poptorch.Options().runOn("cuda"), optimizer)
    plain_optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for _ in range(4):
        outputs, loss = model(x)
        plain_optimizer.zero_grad()
        expected, expected_loss = plain(x.cuda())
        expected_loss.backward()
        plain_optimizer.step()
        torch.testing.assert_close(outputs, expected.detach().cpu(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(loss, expected_loss.detach().cpu(), rtol=1e-4, atol=1e-5)
    state = {name: value.cpu() for name, value in plain.state_dict().items()}
    torch.testing.assert_close(dict(module.state_dict()), state, rtol=1e-4, atol=1e-5)


def test_dropout_between_recurrent_layers_is_drawn_again_on_a_card():
    model = poptorch.inferenceModel(nn.LSTM(6, 64, 2, dropout=0.5), poptorch.Options().runOn("cuda"))
    x = torch.randn(5, 4, 6)
    outputs = [model(x)[0].clone() for _ in range(4)]
    assert all(not torch.equal(one, other) for one, other in itertools.pairwise(outputs))


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_cells_run_on_a_card(cell):
    torch.manual_seed(0)
    module = cell(6, 8)
    x = torch.randn(4, 6)
    expected = module(x)
    outputs = poptorch.inferenceModel(module, poptorch.Options().runOn("cuda"))(x)
    torch.testing.assert_close(outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("partials", [torch.float, torch.half])
def test_half_precision_products_accumulate_in_the_requested_type_on_a_card(partials):
    torch.manual_seed(0)
    options = poptorch.Options().runOn("cuda")
    options.Precision.setPartialsType(partials)
    layer = nn.Linear(4096, 8, bias=False).half()
    x = torch.randn(8, 4096).half()
    exact = x.double() @ layer.weight.detach().double().T
    error = (poptorch.inferenceModel(layer, options)(x).double() - exact).abs().max()
    assert float(error) < (1e-2 if partials is torch.float else 1.0)
