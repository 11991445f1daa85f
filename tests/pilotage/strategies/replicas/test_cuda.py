"""Replicas on NVIDIA cards: recorded shares and sums; one card listed twice stands for two."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import pilotage
from pilotage.execution.state import DeviceState
from pilotage.program.layout import StateLayout
from pilotage.strategies.replicas import cuda
from pilotage.strategies.replicas.shares import CardShare

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")
CARD = torch.device("cuda", 0)


class Network(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.layer, self.dropout = nn.Linear(3, 3), nn.Dropout(dropout)

    def forward(self, x):
        output = self.dropout(self.layer(x).tanh())
        return output, functional.mse_loss(output, torch.ones_like(output))


def trained(cards, *, dropout=0.0, calls=5, **options):
    torch.manual_seed(0)
    module = Network(dropout)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    settings = {"backend": "cuda", "tier": "graph", "outputs": "all", "replicas": 2, "seed": 1} | options
    step = pilotage.training(module, optimizer, cards=["cuda:0"] * cards, **settings)
    generator = torch.Generator().manual_seed(2)
    outputs = [step(torch.randn(16, 3, generator=generator)) for _ in range(calls)]
    return step, outputs


@pytest.mark.parametrize("options", [{}, {"device_iterations": 2}, {"gradient_accumulation": 2}])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_walked_recorded_and_replayed_shares_equal_one_card(options, dropout):
    (one, expected), (several, found) = (trained(cards, dropout=dropout, **options) for cards in (1, 2))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(several.module.state_dict(), one.module.state_dict(), rtol=1e-5, atol=1e-6)


def test_a_card_that_is_listed_twice_has_one_stream():
    step, _ = trained(2, calls=1)
    shares = [worker._share for worker in step._executor.session.strategy._workers]
    assert all(isinstance(share, CardShare) for share in shares)
    first, second = cuda.streams_of(shares)
    assert first is second


@pytest.mark.parametrize("by_nccl", [False, True])
def test_every_card_gets_the_sum(monkeypatch, by_nccl):
    if by_nccl and torch.cuda.device_count() < 2:
        pytest.skip("NCCL needs two cards")
    monkeypatch.setattr(cuda, "_has_nccl", lambda: by_nccl)
    devices = [torch.device("cuda", number) for number in range(2)] if by_nccl else [CARD, CARD]
    states = [DeviceState(StateLayout(parameters={}, buffers={}), None, device, 1, False) for device in devices]
    for number, state in enumerate(states, start=1):
        state.flat_gradients = torch.full((5,), float(number), device=state.device)
    streams = [torch.cuda.Stream(device) for device in devices]
    torch.cuda.synchronize()
    cuda.CudaSummation(streams)(states, None)
    torch.cuda.synchronize()
    for state in states:
        torch.testing.assert_close(state.flat_gradients.cpu(), torch.full((5,), 3.0))
