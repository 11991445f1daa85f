"""Segments a noisy one-dimensional signal into plateaus."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


@dataclass(frozen=True)
class Config:
    calls: int = 8
    device_iterations: int = 6
    batch_size: int = 16
    learning_rate: float = 0.05
    decay: float = 0.5
    decay_from_epoch: int = 1
    steps_per_epoch: int = 12
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
    options = poptorch.Options().deviceIterations(config.device_iterations)
    loader = poptorch.DataLoader(options, plateaus(192), batch_size=config.batch_size)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=config.learning_rate, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=config.decay)  # finding: schedule-not-applied
    training = poptorch.trainingModel(model, options, optimizer)
    call = 0
    while call < config.calls:
        for signal, levels in loader:
            _, loss = training(signal, levels)
            call += 1
            # The program is called this many times in an epoch.
            epoch = call // config.steps_per_epoch
            if epoch >= config.decay_from_epoch and call % config.steps_per_epoch == 0:
                scheduler.step()
                training.setOptimizer(optimizer)
        print(f"call {call}: {loss.item():.4f}")
    training.detachFromDevice()


if __name__ == "__main__":
    train(Config())
