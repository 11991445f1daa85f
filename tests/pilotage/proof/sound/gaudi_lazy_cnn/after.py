"""Counts the blobs in small images with a CNN; command-line options as in our other scripts."""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

os.environ["PT_HPU_LAZY_MODE"] = "1"
import habana_frameworks.torch.core as htcore


class BlobNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.head = nn.Linear(8 * 2 * 2, 4)

    def forward(self, images):
        images = nn.functional.max_pool2d(torch.relu(self.norm1(self.conv1(images))), 2)
        images = nn.functional.max_pool2d(torch.relu(self.conv2(images)), 2)
        return self.head(images.flatten(1))


def blobs(count):
    labels = torch.randint(4, (count,))
    images = 0.1 * torch.randn(count, 1, 8, 8)
    for image, label in zip(images, labels, strict=True):
        for number in range(int(label)):
            image[0, 2 * number : 2 * number + 2, 2 * number : 2 * number + 2] += 1.0
    return TensorDataset(images, labels)


def train(model, device, loader, optimizer, epoch):
    model.train()
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
    print(f"epoch {epoch}: {loss.item():.5f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--device", default="hpu")
    arguments = parser.parse_args()

    torch.manual_seed(31)
    device = torch.device(arguments.device)
    loader = DataLoader(blobs(192), batch_size=12, shuffle=True)
    model = BlobNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate, momentum=0.9)
    for epoch in range(1, arguments.epochs + 1):
        train(model, device, loader, optimizer, epoch)


if __name__ == "__main__":
    main()
