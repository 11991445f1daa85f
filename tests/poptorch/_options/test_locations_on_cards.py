"""Memory use on an NVIDIA card, if there is one."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import poptorch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device."),
]

OFF_CHIP = poptorch.TensorLocationSettings().useOnChipStorage(False)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(512, 512) for _ in range(8))

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = functional.relu(functional.gelu(layer(x)))
            if number % 2:
                x = poptorch.recomputationCheckpoint(x)
        return functional.mse_loss(x, torch.ones_like(x))


def trained(*, recomputes=False, activations=False, optimizer=False):
    """Losses, and the peak memory of the first call, which is not yet recorded."""
    torch.manual_seed(0)
    module = Layers()
    options = poptorch.Options().runOn("cuda", tier="graph").showCompilationProgressBar(False)
    if not recomputes:
        options._Popart.set("autoRecomputation", 0)
    if activations:
        options.TensorLocations.setActivationLocation(OFF_CHIP)
    if optimizer:
        options.TensorLocations.setOptimizerLocation(OFF_CHIP)
    model = poptorch.trainingModel(module, options, poptorch.optim.AdamW(module.parameters(), lr=0.01))
    x = torch.randn(4096, 512)
    model.compile(x)
    torch.cuda.reset_peak_memory_stats()
    losses = [float(model(x))]
    peak = torch.cuda.max_memory_allocated()
    losses += [float(model(x)) for _ in range(3)]
    model.destroy()
    return losses, peak


@pytest.mark.parametrize("way", [{"recomputes": True}, {"activations": True}, {"optimizer": True}], ids=str)
def test_training_on_a_card_is_the_same_with_less_memory(way):
    losses, peak = trained()
    same, less = trained(**way)
    assert same == pytest.approx(losses, rel=1e-4)
    assert less < peak
