"""The network: two convolutions, two linear layers, and the loss inside.

In PyTorch the loss is usually computed outside of the model. A program that trains on a device without Python needs the
loss as well, so here it is part of ``forward``: with labels the model returns the scores and the loss, without them
only the scores. The same class is used for training, evaluation and prediction.
"""

import torch
from torch import Tensor, nn


class GarmentClassifier(nn.Module):
    """From images of shape (batch, 1, 28, 28) to the log-probabilities of ten classes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 5, kernel_size=3)  # 28 x 28 -> 5 maps of 26 x 26
        self.pool = nn.MaxPool2d(2)  # -> 13 x 13
        self.conv2 = nn.Conv2d(5, 12, kernel_size=5)  # -> 12 maps of 9 x 9
        self.norm = nn.GroupNorm(3, 12)
        self.fc1 = nn.Linear(12 * 9 * 9, 100)
        self.fc2 = nn.Linear(100, 10)
        self.relu = nn.ReLU()
        self.log_softmax = nn.LogSoftmax(dim=1)
        self.loss = nn.NLLLoss()

    def forward(self, images: Tensor, labels: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        maps = self.pool(self.relu(self.conv1(images)))
        maps = self.norm(self.relu(self.conv2(maps)))
        features = self.relu(self.fc1(torch.flatten(maps, start_dim=1)))
        scores = self.log_softmax(self.fc2(features))
        return scores if labels is None else (scores, self.loss(scores, labels))
