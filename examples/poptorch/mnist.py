"""A convolutional classifier of hand-drawn digits, trained with several steps per call."""

import argparse

import torch
from torch import nn

import poptorch

SEGMENTS = {
    0: "abcdef",
    1: "bc",
    2: "abged",
    3: "abgcd",
    4: "fgbc",
    5: "afgcd",
    6: "afgedc",
    7: "abc",
    8: "abcdefg",
    9: "abcdfg",
}
STROKES = {
    "a": (2, 5, 8, 17),
    "b": (3, 15, 12, 18),
    "c": (15, 15, 24, 18),
    "d": (22, 5, 25, 17),
    "e": (15, 5, 24, 8),
    "f": (3, 5, 12, 8),
    "g": (12, 5, 15, 17),
}


def digits(count: int) -> torch.utils.data.TensorDataset:
    """Seven-segment digits, shifted and with noise."""
    labels = torch.randint(0, 10, (count,))
    images = 0.3 * torch.randn(count, 1, 28, 28)
    for image, label in zip(images, labels, strict=True):
        down, right = torch.randint(-2, 3, (2,)).tolist()
        for top, left, bottom, end in (STROKES[segment] for segment in SEGMENTS[int(label)]):
            image[0, max(top, 2) + down : bottom + down, left + 3 + right : end + 3 + right] += 1.0
    return torch.utils.data.TensorDataset(images, labels)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(16 * 5 * 5, 10))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        scores = self.head(self.features(images))
        if labels is None:
            return torch.softmax(scores, 1)
        return scores, self.loss(scores, labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1600)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()

    options = poptorch.Options().deviceIterations(10).randomSeed(42).outputMode(poptorch.OutputMode.Sum)
    training_data = poptorch.DataLoader(options, digits(arguments.samples), batch_size=16, shuffle=True, drop_last=True)
    network = Network().train()
    optimizer = poptorch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    training = poptorch.trainingModel(network, options, optimizer)
    for epoch in range(arguments.epochs):
        total = sum(training(images, labels)[1].item() for images, labels in training_data)
        print(f"epoch {epoch + 1}: loss {total / (len(training_data) * 10):.3f}")
    training.detachFromDevice()

    options = poptorch.Options().deviceIterations(5)
    test_data = poptorch.DataLoader(options, digits(400), batch_size=16, drop_last=True)
    inference = poptorch.inferenceModel(network.eval(), options)
    right = torch.cat([inference(images).argmax(1) == labels for images, labels in test_data])
    print(f"accuracy {right.float().mean():.1%} of {len(right)} images")


if __name__ == "__main__":
    main()
