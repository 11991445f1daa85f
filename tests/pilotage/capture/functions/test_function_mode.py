"""Calls of torch functions during capture."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import pilotage
from pilotage.errors import CaptureError


class Function(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_torch_errors_are_raised_unchanged():
    with pytest.raises(RuntimeError, match="broadcast"):
        pilotage.inference(Function(lambda x: x + torch.zeros(7)))(torch.zeros(3))


def test_index_errors_are_raised_unchanged():
    with pytest.raises(IndexError, match="out of bounds"):
        pilotage.inference(Function(lambda x: x[7]))(torch.zeros(3))


def test_constants_made_in_forward_are_captured(assert_equal):
    def function(x):
        return x[torch.tensor(1)], x * torch.tensor(3).item(), x * 2 if torch.tensor(True) else x

    x = torch.arange(3.0)
    assert_equal(pilotage.inference(Function(function))(x), function(x))


def test_functions_wrapped_by_torch_compile_are_captured(assert_equal):
    function = torch.compile(lambda x: x.cos() + 1, backend="eager")
    x = torch.arange(3.0)
    assert_equal(pilotage.inference(Function(function))(x), x.cos() + 1)
    layer = nn.Linear(3, 2)
    assert_equal(pilotage.inference(torch.compile(layer, backend="eager"))(x), layer(x).detach())


def test_torch_control_flow_is_refused_with_a_rewrite():
    def chooses(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    with pytest.raises(CaptureError, match=r"torch\.where\(condition, one, other\)(?s:.*)in chooses:"):
        pilotage.inference(Function(chooses))(torch.zeros(3))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_run_without_gradients(kind, assert_equal):
    torch.manual_seed(0)
    layer, x = kind(3, 4, num_layers=2, batch_first=True), torch.randn(2, 5, 3)

    def without_gradients(x):
        with torch.no_grad():
            return layer(x)[0]

    wanted = without_gradients(x)
    with torch.no_grad():
        assert_equal(pilotage.inference(layer)(x)[0], wanted, 1e-6)
        assert_equal(pilotage.inference(Function(without_gradients))(x), wanted, 1e-6)
    assert_equal(pilotage.inference(Function(without_gradients))(x), wanted, 1e-6)
