"""A small network on Fashion-MNIST in plain PyTorch: on a GPU if there is one, otherwise on the CPU.

This is the script to be ported. `pytorch_ipu.py` is the result, and README.md walks through the differences.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

# The data set is in the folder of the examples, which is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from examples.datasets.fashion_mnist.dataset import FashionMNIST


class ClassificationModel(nn.Module):
    """Two convolutions and two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 5, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(5, 12, 5)
        self.norm = nn.GroupNorm(3, 12)
        self.fc1 = nn.Linear(972, 100)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(100, 10)
        # A bug that the port keeps on purpose: dim=0 normalises over the images of the batch, not over the classes, so
        # the scores of an image depend on the rest of its batch. Fixing it is a separate change.
        self.log_softmax = nn.LogSoftmax(dim=0)

    def forward(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.norm(self.relu(self.conv2(x)))
        x = torch.flatten(x, start_dim=1)
        x = self.relu(self.fc1(x))
        return self.log_softmax(self.fc2(x))


def main(epochs, data, subset):
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_dataset, test_dataset = FashionMNIST.splits(data, limit=subset)
    train_dataloader = torch.utils.data.DataLoader(train_dataset, batch_size=16, shuffle=True, drop_last=True)
    # 25 divides the 10,000 test images, so that all of them are used.
    test_dataloader = torch.utils.data.DataLoader(test_dataset, batch_size=25, drop_last=True)

    model = ClassificationModel()
    model.train()
    model = model.to(device)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    for epoch in range(epochs):
        bar = tqdm(train_dataloader, desc=f"[Epoch {epoch + 1:02}]")
        for images, labels in bar:
            images = images.to(device)
            labels = labels.to(device)

            optimizer.zero_grad()
            output = model(images)
            loss = criterion(output, labels)
            loss.backward()
            optimizer.step()
        bar.write(f"[Epoch {epoch + 1:02}] loss of the last batch: {loss.item():.3f}")

    model.eval()
    correct = total = 0
    with torch.no_grad():
        for images, labels in test_dataloader:
            output = model(images.to(device))
            correct += (output.argmax(dim=1).cpu() == labels).sum().item()
            total += len(labels)
    print(f"Eval accuracy: {100 * correct / total:.2f}% over {total:,} images")
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--data", help="directory of Fashion-MNIST, or 'generated'")
    parser.add_argument("--subset", type=int, help="use only the first N images")
    main(**vars(parser.parse_args()))
