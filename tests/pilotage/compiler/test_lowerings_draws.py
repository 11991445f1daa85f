"""Compiled code on a card draws the same numbers as the graph; `worker/test_main_compiled_code.py` checks the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import pilotage


class Encoder(nn.Module):
    """Draws in attention, after it, and in the wide layers."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.3, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, values, wanted):
        return nn.functional.mse_loss(self.layers(values), wanted)


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
@pytest.mark.parametrize("device_iterations", [1, 3])
def test_dropout_masks_are_those_of_the_graph(tmp_path, device_iterations):
    torch.manual_seed(0)
    model = Encoder()
    batch = [torch.randn(4 * device_iterations, 32, 64) for _ in range(2)]
    losses = {}
    for tier in ("graph", "compiled"):
        trained = copy.deepcopy(model)
        trainer = pilotage.training(
            trained,
            torch.optim.SGD(trained.parameters(), lr=0.1),
            device_iterations=device_iterations,
            outputs="all",
            backend="cuda",
            tier=tier,
            cache_directory=tmp_path,
        )
        torch.manual_seed(7)
        losses[tier] = torch.cat([trainer(*batch).detach().flatten() for _ in range(4)])
        assert trainer.record.latest_tier == tier
    # Steps differ by their masks much more than by rounding.
    assert losses["graph"].diff().abs().min() > 1e-4
    torch.testing.assert_close(losses["compiled"], losses["graph"], rtol=2e-5, atol=1e-6)
