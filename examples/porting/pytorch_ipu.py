"""The script `pytorch_gpu.py`, ported to poptorch: each training step is one program on the device.

README.md walks through the differences.
"""

import argparse
import sys
from pathlib import Path

import torch
from torch import nn
from tqdm import tqdm

import poptorch

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


class ModelWithLoss(nn.Module):
    """A model and its criterion as one module, so that the model itself does not change."""

    def __init__(self, model, criterion):
        super().__init__()
        self.model = model
        self.criterion = criterion

    def forward(self, x, labels=None):
        output = self.model(x)
        if labels is not None:
            loss = self.criterion(output, labels)
            return output, loss
        return output


class ModelWithCustomLoss(ModelWithLoss):
    """The same for a custom criterion: `identity_loss` marks where the backward pass starts."""

    def forward(self, x, labels=None):
        output = self.model(x)
        if labels is not None:
            loss = self.criterion(output, labels)
            return output, poptorch.identity_loss(loss, reduction="sum")
        return output


def negative_log_likelihood(output, labels):
    """The same as `nn.NLLLoss`, as an example of a custom loss."""
    return -output.gather(1, labels.unsqueeze(1)).mean()


def main(epochs, data, subset, custom_loss=False):
    torch.manual_seed(42)
    opts = poptorch.Options()

    train_dataset, test_dataset = FashionMNIST.splits(data, limit=subset)
    train_dataloader = poptorch.DataLoader(opts, train_dataset, batch_size=16, shuffle=True, drop_last=True)
    # 25 divides the 10,000 test images, so that all of them are used.
    test_dataloader = poptorch.DataLoader(opts, test_dataset, batch_size=25, drop_last=True)

    model = ClassificationModel()
    model.train()
    wrapper, criterion = (
        (ModelWithCustomLoss, negative_log_likelihood) if custom_loss else (ModelWithLoss, nn.NLLLoss())
    )
    model = wrapper(model, criterion)
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    training_model = poptorch.trainingModel(model, options=opts, optimizer=optimizer)

    for epoch in range(epochs):
        bar = tqdm(train_dataloader, desc=f"[Epoch {epoch + 1:02}]")
        for images, labels in bar:
            output, loss = training_model(images, labels)
        bar.write(f"[Epoch {epoch + 1:02}] loss of the last batch: {loss.item():.3f}")
    training_model.detachFromDevice()

    model.eval()
    inference_model = poptorch.inferenceModel(model, options=opts)
    correct = total = 0
    for images, labels in test_dataloader:
        output = inference_model(images)
        correct += (output.argmax(dim=1) == labels).sum().item()
        total += len(labels)
    inference_model.detachFromDevice()
    print(f"Eval accuracy: {100 * correct / total:.2f}% over {total:,} images")
    return model.model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--data", help="directory of Fashion-MNIST, or 'generated'")
    parser.add_argument("--subset", type=int, help="use only the first N images")
    parser.add_argument("--custom-loss", action="store_true", help="train with a custom loss")
    main(**vars(parser.parse_args()))
