"""A small vision transformer with half-precision weights on two replicas."""

import argparse

import torch
from torch import nn

import poptorch

SIDE, PATCH = 16, 4


def shapes(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of horizontal, vertical or crossed bars."""
    labels = torch.randint(0, 3, (count,))
    images = 0.2 * torch.randn(count, 1, SIDE, SIDE)
    for image, label in zip(images, labels, strict=True):
        row, column = torch.randint(2, SIDE - 2, (2,)).tolist()
        if label != 1:
            image[0, row - 1 : row + 1] += 1
        if label != 0:
            image[0, :, column - 1 : column + 1] += 1
    return images.half(), labels


class VisionTransformer(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.patches = nn.Conv2d(1, width, PATCH, stride=PATCH)
        self.positions = nn.Parameter(0.02 * torch.randn((SIDE // PATCH) ** 2, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, images, labels=None):
        patches = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        scores = self.head(self.encoder(patches).mean(1))
        if labels is None:
            return scores
        return scores, nn.functional.cross_entropy(scores.float(), labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=12)
    arguments = parser.parse_args()

    options = poptorch.Options().replicationFactor(2).deviceIterations(4).randomSeed(3)
    options.Training.gradientAccumulation(2)
    options.Precision.enableStochasticRounding(True)
    model = VisionTransformer().train().half()
    optimizer = poptorch.optim.AdamW(
        model.parameters(), lr=2e-3, weight_decay=0.01, loss_scaling=128.0, accum_type=torch.float32
    )
    training = poptorch.trainingModel(model, options, optimizer)
    for call in range(arguments.calls):
        _, loss = training(*shapes(16 * 2 * 4 * 2))
        if call % 4 == 3:
            print(f"after {4 * (call + 1)} updates: loss {loss.float().mean():.3f}")
    images, labels = shapes(256)
    scores = poptorch.inferenceModel(model.eval())(images)
    print(f"accuracy {(scores.argmax(1) == labels).float().mean():.1%}, weights in {model.head.weight.dtype}")


if __name__ == "__main__":
    main()
