"""Predicts the drag of a wing section from its shape."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


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
    loader = DataLoader(data, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(epochs):
        for shape, drag in loader:
            optimizer.zero_grad()
            _, loss = model(shape, drag)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.5f}")


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
