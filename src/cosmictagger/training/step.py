"""Network, loss and metrics: what a device runs for one batch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.networks.uresnet import Outputs, UResNet, stack_planes
from cosmictagger.training.heads import head_losses
from cosmictagger.training.loss import PLANES, BalancedLoss
from cosmictagger.training.metrics import batch_metrics, predicted_classes


class StepResult(NamedTuple):
    """The prediction for a batch, its metrics and its loss."""

    prediction: Tensor
    """The class of each pixel, plane by plane along the batch."""

    metrics: Tensor
    """The metrics named by `cosmictagger.training.metrics.KEYS`, then those of the heads."""

    loss: Tensor


def run_and_compare(network: UResNet, loss: nn.Module, image: Tensor, label: Tensor, *truths: Tensor) -> StepResult:
    """Run the network and compare with the labels; ``truths`` are the event labels and vertices for its heads."""
    return compare(network.outputs(image), loss, label, *truths)


def compare(outputs: Outputs, loss: nn.Module, label: Tensor, *truths: Tensor) -> StepResult:
    """Compare the network's outputs with the labels."""
    labels = stack_planes(label)[:, 0]
    with torch.no_grad():
        prediction = predicted_classes(outputs.scores)
        metrics = batch_metrics(prediction, labels)
    total = loss(outputs.scores, labels)
    if outputs.event is not None or outputs.vertex is not None:
        of_heads, numbers = head_losses(outputs, *truths)
        total, metrics = total + of_heads, torch.cat((metrics, numbers))
    return StepResult(prediction, metrics, total)


class TrainingStep(nn.Module):
    """Metrics and loss of a batch."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.network = network
        self.loss = BalancedLoss(scheme)

    def forward(self, image: Tensor, label: Tensor, *truths: Tensor) -> tuple[Tensor, Tensor]:
        """The metrics and the loss."""
        _, metrics, loss = run_and_compare(self.network, self.loss, image, label, *truths)
        return metrics, loss


class EvaluationStep(nn.Module):
    """Prediction, metrics and loss of a batch."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.network = network
        self.loss = BalancedLoss(scheme)

    def forward(self, image: Tensor, label: Tensor, *truths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The class of each pixel, the metrics and the loss."""
        prediction, metrics, loss = run_and_compare(self.network, self.loss, image, label, *truths)
        return by_event(prediction), metrics, loss


def by_event(prediction: Tensor) -> Tensor:
    """(N, 3, H, W) from classes that are stacked plane by plane."""
    planes: Tensor = prediction.unflatten(0, (PLANES, -1))
    return planes.transpose(0, 1).contiguous()
