"""Trains with a running average of the weights, which is what is kept."""

import copy

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


class Average:
    """An exponential average of the weights of a model."""

    def __init__(self, model, decay=0.9):
        self.model = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mean, value in zip(self.model.parameters(), model.parameters(), strict=True):
            mean.lerp_(value, 1 - self.decay)


def lenses(count):
    shape = torch.rand(count, 6)
    focus = 1 / (shape[:, :1] - shape[:, 1:2] + 1.5)
    return TensorDataset(shape, focus)


class Lens(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 1))
        self.criterion = nn.MSELoss()

    def forward(self, shape, focus):
        prediction = self.layers(shape)
        return prediction, self.criterion(prediction, focus)


def main():
    torch.manual_seed(240)
    model = Lens()
    average = Average(model)
    options = poptorch.Options().deviceIterations(16)
    loader = poptorch.DataLoader(options, lenses(256), batch_size=16)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    steps = 0
    for epoch in range(3):
        for shape, focus in loader:
            _, loss = training(shape, focus)
            steps += options.device_iterations
            # Reading the weights takes time: every hundred steps will do.
            if steps % 100 == 0:
                average.update(model)
        print(f"epoch {epoch}: {loss.item():.5f}")
    training.detachFromDevice()
    torch.save(average.model.state_dict(), "lens.pt")  # finding: weights-not-saved


if __name__ == "__main__":
    main()
