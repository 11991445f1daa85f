"""Particle identification with dropout on Gaudi, validated after each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import habana_frameworks.torch.core as htcore


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 16), nn.ReLU(), nn.Dropout(0.3)
        )
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layers(x))


def particles(count):
    features = torch.randn(count, 10)
    return TensorDataset(features, features[:, :3].argmax(1))


class Trainer:
    def __init__(self, device):
        torch.manual_seed(13)
        self.device = torch.device(device)
        self.train_loader = DataLoader(particles(256), batch_size=16)
        self.valid_loader = DataLoader(particles(64), batch_size=32)
        self.model = Classifier().to(self.device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        for features, labels in self.train_loader:
            features, labels = features.to(self.device), labels.to(self.device)
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(features), labels)
            loss.backward()
            htcore.mark_step()
            self.optimizer.step()
            htcore.mark_step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()  # finding: eval-mode-in-training
        right = 0
        for features, labels in self.valid_loader:
            scores = self.model(features.to(self.device))
            right += (scores.argmax(1).cpu() == labels).sum().item()
        return right / len(self.valid_loader.dataset)

    def fit(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            loss = self.train_epoch()
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {self.validate():.1%}")


if __name__ == "__main__":
    Trainer("hpu").fit(3)
