"""Segments a noisy one-dimensional signal into plateaus."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Config:
    epochs: int = 4
    batch_size: int = 16
    learning_rate: float = 0.05
    decay: float = 0.5
    decay_from_epoch: int = 1
    seed: int = 44


def plateaus(count, length=24):
    levels = torch.randint(3, (count, length // 8)).repeat_interleave(8, dim=1)
    return TensorDataset((levels + 0.2 * torch.randn(count, length)).unsqueeze(1), levels)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 8, 5, padding=2)
        self.conv2 = nn.Conv1d(8, 3, 5, padding=2)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, signal, levels):
        scores = self.conv2(torch.relu(self.conv1(signal)))
        return scores, self.criterion(scores, levels)


def train(config):
    torch.manual_seed(config.seed)
    model = Segmenter()
    loader = DataLoader(plateaus(192), batch_size=config.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.learning_rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=config.decay)
    for epoch in range(1, config.epochs + 1):
        for signal, levels in loader:
            optimizer.zero_grad()
            _, loss = model(signal, levels)
            loss.backward()
            optimizer.step()
        if epoch >= config.decay_from_epoch:
            scheduler.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    train(Config())
