"""Network, loss and metrics together: what a device runs for one batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.networks.uresnet import UResNet, stack_planes
from cosmictagger.training.loss import PLANES, BalancedLoss
from cosmictagger.training.metrics import measured, predicted


class TrainingStep(nn.Module):
    """Metrics and loss of a batch."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.network = network
        self.loss = BalancedLoss(scheme)

    def forward(self, image: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """The metrics, and the loss to go back from."""
        scores, labels = self.network.stacked(image), stack_planes(label)[:, 0]
        with torch.no_grad():
            metrics = measured(predicted(scores), labels)
        return metrics, self.loss(scores, labels)


class EvaluationStep(nn.Module):
    """Prediction, metrics and loss of a batch."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.network = network
        self.loss = BalancedLoss(scheme)

    def forward(self, image: Tensor, label: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The class of each pixel, the metrics and the loss."""
        scores, labels = self.network.stacked(image), stack_planes(label)[:, 0]
        prediction = predicted(scores)
        by_event = prediction.unflatten(0, (PLANES, -1)).transpose(0, 1).contiguous()
        return by_event, measured(prediction, labels), self.loss(scores, labels)
