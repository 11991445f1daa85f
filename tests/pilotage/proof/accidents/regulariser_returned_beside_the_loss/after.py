"""Tells waves from noise, with an evaluation between the epochs; a table of functions does the work."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

import pilotage


def waves(count):
    generator = torch.Generator().manual_seed(91)
    kind = torch.randint(2, (count,), generator=generator)
    time = torch.linspace(0, 6.3, 32)
    signal = torch.sin(time * (1 + 2 * torch.rand(count, 1, generator=generator)))
    noise = torch.randn(count, 32, generator=generator)
    return TensorDataset(torch.where(kind[:, None] == 1, signal, noise)[:, None], kind)


class Detector(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv1d(1, 6, 5, stride=2),
            nn.BatchNorm1d(6),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
            nn.Linear(24, 2),
        )


class WithLoss(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, signal, kind):
        scores = self.network(signal)
        loss = pilotage.mark_loss(nn.functional.cross_entropy(scores, kind))  # finding: loss-root-differs
        return loss, loss + 0.1 * scores.square().mean()


@torch.inference_mode()
def accuracy(network, loader):
    network.eval()
    right = sum(int((network(signal).argmax(1) == kind).sum()) for signal, kind in loader)
    network.train()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(92)
    training, validation = random_split(waves(320), [256, 64])
    network = Detector()
    model = WithLoss(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loaders = {"train": DataLoader(training, 16, shuffle=True), "check": DataLoader(validation, 32)}
    program = pilotage.training(model, optimizer)
    for epoch in range(3):
        for signal, kind in loaders["train"]:
            _, loss = program(signal, kind)
        print(epoch, loss.item(), accuracy(network, loaders["check"]))


if __name__ == "__main__":
    main()
