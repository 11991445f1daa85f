"""Predicts charges of atoms from their neighbours in bfloat16."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def atoms(count):
    neighbours = torch.rand(count, 6, 4)
    charge = (neighbours[..., 0] - neighbours[..., 1]).mean(1, keepdim=True)
    return TensorDataset(neighbours, charge)


class Charges(nn.Module):
    """The same network for each neighbour, then the mean."""

    def __init__(self):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16))
        self.out = nn.Linear(16, 1)

    def forward(self, neighbours):
        return self.out(self.message(neighbours).mean(1))


class Fit:
    def __init__(self, model, rate):
        self.model = model
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def step(self, neighbours, charge):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = self.criterion(self.model(neighbours), charge)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.step(*batch) for batch in loader]
            print(f"epoch {epoch}: {sum(losses) / len(losses):.5f}")


if __name__ == "__main__":
    torch.manual_seed(81)
    data, model = atoms(240), Charges()
    Fit(model, rate=0.1).run(DataLoader(data, batch_size=12), epochs=2)
    with torch.no_grad():
        error = (model(data.tensors[0]) - data.tensors[1]).abs()
    print(f"mean error {error.mean().item():.4f}, largest {error.max().item():.4f}")
