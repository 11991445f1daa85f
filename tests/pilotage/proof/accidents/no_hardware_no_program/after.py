"""A regression of material stiffness, with early stopping."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import poptorch


def samples(count):
    structure = torch.rand(count, 9)
    stiffness = structure[:, :3].prod(dim=1, keepdim=True) * 4 + structure[:, 3:4]
    return TensorDataset(structure, stiffness)


class Stiffness(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 24), nn.ELU(), nn.Linear(24, 1))

    def forward(self, structure, target):
        prediction = self.layers(structure)
        return prediction, nn.functional.mse_loss(prediction, target)


def host_epochs(model, loader, optimizer):
    """The mean loss of each epoch, for ever."""
    while True:
        total = 0.0
        for structure, target in loader:
            optimizer.zero_grad()
            _, loss = model(structure, target)
            loss.backward()
            optimizer.step()  # finding: host-fallback
            total += loss.item()
        yield total / len(loader)


def ipu_epochs(model, data, optimizer):
    options = poptorch.Options().deviceIterations(4)
    loader = poptorch.DataLoader(options, data, batch_size=16)
    training = poptorch.trainingModel(model, options, optimizer)
    while True:
        losses = [training(structure, target)[1] for structure, target in loader]
        yield torch.stack(losses).mean().item()


def fit(epochs, patience=2, longest=4):
    best, waited = float("inf"), 0
    for number, loss in enumerate(epochs, 1):
        print(f"epoch {number}: {loss:.5f}")
        best, waited = (loss, 0) if loss < best else (best, waited + 1)
        if waited == patience or number == longest:
            return best
    return best


def main():
    torch.manual_seed(150)
    model = Stiffness()
    data = samples(192)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if poptorch.ipuHardwareIsAvailable():
        epochs = ipu_epochs(model, data, optimizer)
    else:
        epochs = host_epochs(model, DataLoader(data, batch_size=16), optimizer)
    print(f"best {fit(epochs):.5f}")


if __name__ == "__main__":
    main()
