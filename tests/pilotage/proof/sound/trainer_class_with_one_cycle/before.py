"""Interpolates a rough terrain, with a learning rate in one cycle."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def terrain(count):
    generator = torch.Generator().manual_seed(320)
    place = 4 * torch.rand(count, 2, generator=generator)
    height = torch.sin(place[:, :1]) + 0.5 * torch.cos(3 * place[:, 1:]) * torch.sin(2 * place[:, :1])
    return TensorDataset(place, height)


class Terrain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(2, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, 1)

    def forward(self, place):
        hidden = torch.tanh(self.first(place))
        return self.third(hidden + torch.tanh(self.second(hidden)))


class Trainer:
    def __init__(self, model, loader, epochs, rate):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=rate, total_steps=epochs * len(loader), cycle_momentum=False
        )
        self.criterion = nn.MSELoss()

    def step(self, place, height):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(place), height)
        loss.backward()
        self.optimizer.step()
        return loss

    def fit(self):
        for epoch in range(self.epochs):
            for place, height in self.loader:
                loss = self.step(place, height)
                self.scheduler.step()
            print(f"epoch {epoch}: {loss.item():.5f} at rate {self.scheduler.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    torch.manual_seed(321)
    loader = DataLoader(terrain(256), batch_size=16, shuffle=True)
    Trainer(Terrain(24), loader, epochs=3, rate=0.1).fit()
