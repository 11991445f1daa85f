"""A convolutional classifier of handwritten digits, on Gaudi."""

import argparse
import os

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(32 * 3 * 3, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, images):
        hidden = functional.relu(self.conv2(functional.relu(self.conv1(images))))
        hidden = self.dropout(functional.max_pool2d(hidden, 2)).flatten(1)
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(hidden))), dim=1)


def digits(part):
    """The 1,797 digits of 8 × 8 pixels that come with scikit-learn; the last 360 are for testing."""
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    whole = TensorDataset(images, torch.tensor(labels))
    return torch.utils.data.Subset(whole, range(1437) if part == "train" else range(1437, 1797))


def train(arguments, model, device, loader, optimizer, epoch):
    import habana_frameworks.torch.core as htcore

    model.train()
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(device_type="hpu", dtype=torch.bfloat16, enabled=arguments.autocast):
            loss = functional.nll_loss(model(images), labels)
        loss.backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.9f}")


def test(model, device, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            scores = model(images.to(device))
            right += scores.argmax(1).eq(labels.to(device)).sum().item()
    print(f"accuracy: {right / len(loader.dataset):.1%} of {len(loader.dataset)} digits")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lazy", action="store_true", help="gather operations into graphs between two mark_step calls")
    parser.add_argument("--autocast", action="store_true", help="compute in bfloat16 where that is safe")
    arguments = parser.parse_args()

    # Set it before the first import of habana_frameworks, otherwise it may be ignored.
    os.environ["PT_HPU_LAZY_MODE"] = "1" if arguments.lazy else "0"
    import habana_frameworks.torch.core  # noqa: F401

    torch.manual_seed(arguments.seed)
    device = torch.device("hpu")
    loader = DataLoader(digits("train"), batch_size=arguments.batch_size, shuffle=True, drop_last=True, pin_memory=True)
    model = Network().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=arguments.lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=arguments.gamma)
    for epoch in range(1, arguments.epochs + 1):
        train(arguments, model, device, loader, optimizer, epoch)
        schedule.step()
    test(model, device, DataLoader(digits("test"), batch_size=90))


if __name__ == "__main__":
    main()
