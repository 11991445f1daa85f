"""A classifier of heartbeats, saved for the clinic's viewer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def heartbeats(count):
    time = torch.linspace(-1, 1, 30)
    kind = torch.arange(count) % 2
    width = 0.1 + 0.15 * kind.unsqueeze(1)
    return TensorDataset(torch.exp(-((time / width) ** 2)) + 0.1 * torch.randn(count, 30), kind)


class Heart(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, beats):
        return self.layers(beats)


class Study:
    def __init__(self, device):
        self.device = device
        self.model = Heart()
        self.criterion = nn.CrossEntropyLoss()

    def train(self, loader, epochs):
        model = self.on_device()
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for epoch in range(epochs):
            for beats, kind in loader:
                optimizer.zero_grad()
                loss = self.criterion(model(beats.to(self.device)), kind.to(self.device))
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch}: {loss.item():.4f}")

    def on_device(self):
        return self.model.to(self.device)

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "labels": ["healthy", "wide"]}, path)


if __name__ == "__main__":
    torch.manual_seed(230)
    study = Study(torch.device("cpu"))
    study.train(DataLoader(heartbeats(240), batch_size=12), epochs=2)
    study.save("heart.pt")
