"""A digit classifier with dropout and batch normalisation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.dropout = nn.Dropout(0.25)
        self.head = nn.Linear(6 * 4 * 4, 10)

    def forward(self, images, labels=None):
        features = nn.functional.max_pool2d(torch.relu(self.norm(self.conv(images))), 2)
        scores = self.head(self.dropout(features.flatten(1)))
        if labels is None:
            return scores
        return scores, nn.functional.cross_entropy(scores, labels)


def digits(count):
    labels = torch.arange(count) % 10
    images = 0.2 * torch.randn(count, 1, 10, 10)
    images[torch.arange(count), 0, labels] += 1.0
    return TensorDataset(images, labels)


def accuracy(model, data):
    images, labels = data.tensors
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    torch.manual_seed(200)
    data, test = digits(240), digits(100)
    model = Digits()
    model.eval()
    print(f"accuracy before training: {accuracy(model, test):.1%}")

    model.train()
    loader = DataLoader(data, batch_size=12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(2):
        for images, labels in loader:
            optimizer.zero_grad()
            _, loss = model(images, labels)
            loss.backward()
            optimizer.step()
    model.eval()
    print(f"accuracy after training: {accuracy(model, test):.1%}, last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
