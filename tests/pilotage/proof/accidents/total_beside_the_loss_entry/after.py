"""Two tasks on one network: the class of a galaxy, and its redshift."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pilotage


def galaxies(count):
    colours = torch.randn(count, 5)
    kind = (colours[:, 0] > colours[:, 1]).long()
    redshift = torch.sigmoid(colours[:, 2:3] - colours[:, 3:4])
    return TensorDataset(colours, kind, redshift)


class Galaxies(nn.Module):
    """One body and two heads."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 24), nn.ReLU())
        self.kind = nn.Linear(24, 2)
        self.redshift = nn.Linear(24, 1)

    def forward(self, colours):
        hidden = self.body(colours)
        return self.kind(hidden), self.redshift(hidden)


class WithLosses(nn.Module):
    """The network and both losses, for one program."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, colours, kind, redshift):
        scores, distance = self.network(colours)
        classification = nn.functional.cross_entropy(scores, kind)  # finding: loss-root-differs
        regression = nn.functional.mse_loss(distance, redshift)
        return {"loss": classification, "total": classification + 3.0 * regression}


def main():
    torch.manual_seed(180)
    loader = DataLoader(galaxies(320), batch_size=16)
    model = Galaxies()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step = pilotage.training(WithLosses(model), optimizer)
    for epoch in range(2):
        for colours, kind, redshift in loader:
            parts = step(colours, kind, redshift)
        print(f"epoch {epoch}: " + ", ".join(f"{name} {value.item():.4f}" for name, value in parts.items()))


if __name__ == "__main__":
    main()
