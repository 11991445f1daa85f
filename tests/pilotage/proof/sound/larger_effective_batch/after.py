# prove: --align
"""Predicts the drag of a wing section from its shape, with the gradients of four batches in each update."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


def sections(count):
    generator = torch.Generator().manual_seed(580)
    shape = torch.rand(count, 6, generator=generator)
    drag = 0.1 + shape[:, :1] ** 2 + 0.5 * shape[:, 1:2] * shape[:, 2:3]
    return TensorDataset(shape, drag + 0.01 * torch.randn(count, 1, generator=generator))


class Drag(nn.Module):
    """Drag from six parameters of the shape."""

    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))
        self.criterion = nn.MSELoss()

    def forward(self, shape, drag=None):
        prediction = self.layers(shape)
        if drag is None:
            return prediction
        return prediction, self.criterion(prediction, drag)


def train(model, data, epochs):
    options = poptorch.Options().outputMode(poptorch.OutputMode.All)
    options.Training.gradientAccumulation(4)
    loader = poptorch.DataLoader(options, data, batch_size=8)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training = poptorch.trainingModel(model, options, optimizer)
    for epoch in range(epochs):
        for shape, drag in loader:
            _, loss = training(shape, drag)
        print(f"epoch {epoch}: {loss.mean().item():.5f}")
    training.detachFromDevice()


def main():
    torch.manual_seed(581)
    model = Drag()
    data = sections(192)
    train(model, data, epochs=2)
    with torch.no_grad():
        error = (model(data.tensors[0]) - data.tensors[1]).abs().mean().item()
    print(f"mean error {error:.4f}")


if __name__ == "__main__":
    main()
