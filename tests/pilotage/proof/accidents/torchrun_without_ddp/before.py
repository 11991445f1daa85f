"""Energy regression for a calorimeter: a small CNN on 8 x 8 towers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def showers(count):
    energy = torch.rand(count, 1)
    towers = 0.05 * torch.randn(count, 1, 8, 8)
    towers[:, :, 2:6, 2:6] += energy.view(-1, 1, 1, 1)
    return TensorDataset(towers, energy)


class Calorimeter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Linear(4 * 4 * 4, 1)

    def forward(self, towers):
        features = nn.functional.max_pool2d(torch.relu(self.conv(towers)), 2)
        return self.head(features.flatten(1))


def train_epoch(model, loader, optimizer):
    total = 0.0
    for towers, energy in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(towers), energy)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    torch.manual_seed(5)
    data = showers(320)
    model = Calorimeter()
    loader = DataLoader(data, batch_size=32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(3):
        loss = train_epoch(model, loader, optimizer)
        print(f"epoch {epoch}: {loss:.5f}")
    torch.save(model.state_dict(), "calorimeter.pt")


if __name__ == "__main__":
    main()
