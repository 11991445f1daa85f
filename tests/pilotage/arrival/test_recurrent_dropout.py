"""Recurrent networks with dropout, which cuDNN would draw from a generator of its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.arrival.recurrent_dropout import DropoutOfTorch

KINDS = (nn.LSTM, nn.GRU, nn.RNN)


def cudnn_within(network, *, packed=False):
    """Whether cuDNN is enabled while a network runs."""
    seen = []
    x = torch.randn(3, 2, 4)
    given = nn.utils.rnn.pack_padded_sequence(x, [3, 2]) if packed else x

    class Looking(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func in (torch.lstm, torch.gru, torch.rnn_tanh):
                seen.append(torch.backends.cudnn.enabled)
            return func(*args, **(kwargs or {}))

    with Looking(), DropoutOfTorch():
        network(given)
    return seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_networks_with_dropout_run_without_cudnn(kind, packed):
    assert cudnn_within(kind(4, 4, 2, dropout=0.5), packed=packed) == [False]
    assert torch.backends.cudnn.enabled


@pytest.mark.parametrize("kind", KINDS)
def test_other_networks_run_as_they_are(kind):
    assert cudnn_within(kind(4, 4, 2)) == [True]
    assert cudnn_within(kind(4, 4, 2, dropout=0.5).eval()) == [True]


CALLS = {
    "state as a list": lambda x, state, weights: torch.lstm(x, list(state), weights, True, 2, 0.5, True, False, False),
    "weights as a tuple": lambda x, state, weights: torch.lstm(
        x, state, tuple(weights), True, 2, 0.5, True, False, False
    ),
    "by name": lambda x, state, weights: torch.lstm(
        input=x,
        hx=state,
        params=weights,
        has_biases=True,
        num_layers=2,
        dropout=0.5,
        train=True,
        bidirectional=False,
        batch_first=False,
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_dropout_is_seen_however_torchs_function_is_called(call):
    weights = nn.LSTM(4, 4, 2)._flat_weights
    network = lambda x: CALLS[call](x, (torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)), weights)  # noqa: E731
    assert cudnn_within(network) == [False]


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = kind(8, 16, 3, dropout=0.3, batch_first=True)
        self.last = nn.Linear(16, 2)

    def forward(self, x):
        return self.last(self.layers(x)[0]).square().mean()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_agrees_with_eager_on_a_card(kind):
    torch.manual_seed(0)
    model = Tagger(kind)
    step = pilotage.training(
        model, torch.optim.SGD(model.parameters(), lr=0.1), backend="cuda", tier="graph", check="first"
    )
    step(torch.randn(4, 6, 8))
