"""The network and its data, shared by the scripts of this folder."""

import torch
from torch import nn
from torch.utils.data import TensorDataset


class Attention(nn.Module):
    """Weighs the five hits of a track by their quality."""

    def __init__(self, width=12):
        super().__init__()
        self.embed = nn.Linear(3, width)
        self.quality = nn.Linear(width, 1)
        self.head = nn.Linear(width, 2)

    def forward(self, hits):
        hidden = torch.relu(self.embed(hits))
        weights = torch.softmax(self.quality(hidden), dim=1)
        return self.head((weights * hidden).sum(1))


def tracks(count, seed=480):
    generator = torch.Generator().manual_seed(seed)
    slope = torch.randn(count, 2, generator=generator)
    layer = torch.arange(1.0, 6.0)
    hits = torch.cat([slope.unsqueeze(1) * layer.view(1, 5, 1), layer.view(1, 5, 1).expand(count, 5, 1)], dim=2)
    return TensorDataset(hits / 5 + 0.05 * torch.randn(count, 5, 3, generator=generator), slope)
