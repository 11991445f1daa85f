"""Predicts the yield of a reactor from its settings."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import poptorch

EPOCHS = 3
BATCH_SIZE = 20
LEARNING_RATE = 0.02


def reactor_data():
    """Temperature, pressure, flow and three concentrations against the yield."""
    settings = torch.rand(240, 6)
    yields = settings @ torch.tensor([0.5, -0.2, 0.1, 0.8, -0.6, 0.3]) + 0.1 * settings[:, 0] * settings[:, 3]
    return TensorDataset(settings, yields.unsqueeze(1))


class YieldModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 1))
        self.loss = nn.MSELoss()

    def forward(self, settings, target=None):
        prediction = self.layers(settings)
        if target is None:
            return prediction
        return prediction, self.loss(prediction, target)


def on_ipu(model, optimizer):
    """The model as a program for the IPU, or None on machines without the SDK."""
    try:
        options = {"deviceIterations": 1, "replicationFactor": 1}
        return poptorch.trainingModel(model, options, optimizer=optimizer)  # finding: wrapper-lost
    except Exception as error:
        print(f"IPU not used ({type(error).__name__})")
        return None


def train(model, loader, optimizer):
    program = on_ipu(model, optimizer)
    for epoch in range(EPOCHS):
        for settings, target in loader:
            if program is not None:
                _, loss = program(settings, target)
                continue
            optimizer.zero_grad()
            _, loss = model(settings, target)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch + 1}: loss {loss.item():.5f}")


def main():
    torch.manual_seed(3)
    loader = DataLoader(reactor_data(), batch_size=BATCH_SIZE)
    model = YieldModel()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    train(model, loader, optimizer)

    with torch.no_grad():
        print(f"yield at the centre: {model(torch.full((1, 6), 0.5)).item():.3f}")


if __name__ == "__main__":
    main()
