"""A digit classifier with dropout and batch normalisation."""

import torch
from torch import nn
from torch.utils.data import TensorDataset

import poptorch


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
    model.eval()  # finding: eval-mode-in-training
    print(f"accuracy before training: {accuracy(model, test):.1%}")

    options = poptorch.Options()
    loader = poptorch.DataLoader(options, data, batch_size=12)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    training_model = poptorch.trainingModel(model, options, optimizer)
    for _ in range(2):
        for images, labels in loader:
            _, loss = training_model(images, labels)
    training_model.detachFromDevice()
    model.eval()
    print(f"accuracy after training: {accuracy(model, test):.1%}, last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
