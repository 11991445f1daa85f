from __future__ import annotations

import torch
from torch import nn

import poptorch


class Placed(nn.Module):
    def forward(self, x):
        device = "ipu" if poptorch.isRunningOnIpu() else None
        made = torch.ones(2, device=device) + torch.tensor([1.0, 2.0], device=device and torch.device(device))
        drawn = torch.rand(2, device=device) * 0 + torch.zeros_like(x, device=device)
        moved = x if device is None else x.to(device).to("ipu:0", torch.float64).to(device="ipu", dtype=torch.float32)
        copied = moved.to("ipu", copy=True) if device else moved.clone()
        copied += 1
        return made + drawn + moved, copied, x.ipu() if device else x


def test_the_device_ipu_is_where_the_model_runs(tier):
    x = torch.tensor([[3.0, 4.0]])
    results = poptorch.inferenceModel(Placed(), poptorch.Options().runOn("cpu", tier=tier))(x)
    assert [each.device.type for each in results] == ["cpu"] * 3
    torch.testing.assert_close(results, Placed()(x))
