"""Network, loss and metrics together: what a device runs for one batch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.networks.uresnet import Outputs, UResNet, stack_planes
from cosmictagger.training.heads import judged_heads
from cosmictagger.training.loss import PLANES, BalancedLoss
from cosmictagger.training.metrics import measured, predicted


class Judgement(NamedTuple):
    """What the network made of a batch, compared with the truth."""

    prediction: Tensor
    """The class of each pixel, plane by plane along the batch."""

    metrics: Tensor
    """The numbers named by `cosmictagger.training.metrics.KEYS`, then those of the heads."""

    loss: Tensor


def judged(network: UResNet, loss: nn.Module, image: Tensor, label: Tensor, *truths: Tensor) -> Judgement:
    """Run the network and compare; ``truths`` are the event labels and vertices that its heads need."""
    return compared(network.outputs(image), loss, label, *truths)


def compared(said: Outputs, loss: nn.Module, label: Tensor, *truths: Tensor) -> Judgement:
    """Compare what the network said."""
    labels = stack_planes(label)[:, 0]
    with torch.no_grad():
        prediction = predicted(said.scores)
        metrics = measured(prediction, labels)
    total = loss(said.scores, labels)
    if said.event is not None or said.vertex is not None:
        of_heads, numbers = judged_heads(said, *truths)
        total, metrics = total + of_heads, torch.cat((metrics, numbers))
    return Judgement(prediction, metrics, total)


class TrainingStep(nn.Module):
    """Metrics and loss of a batch."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.network = network
        self.loss = BalancedLoss(scheme)

    def forward(self, image: Tensor, label: Tensor, *truths: Tensor) -> tuple[Tensor, Tensor]:
        """The metrics, and the loss to go back from."""
        _, metrics, loss = judged(self.network, self.loss, image, label, *truths)
        return metrics, loss


class EvaluationStep(nn.Module):
    """Prediction, metrics and loss of a batch."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme) -> None:
        super().__init__()
        self.network = network
        self.loss = BalancedLoss(scheme)

    def forward(self, image: Tensor, label: Tensor, *truths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The class of each pixel, the metrics and the loss."""
        prediction, metrics, loss = judged(self.network, self.loss, image, label, *truths)
        return by_event(prediction), metrics, loss


def by_event(prediction: Tensor) -> Tensor:
    """(N, 3, H, W) from classes that are stacked plane by plane."""
    planes: Tensor = prediction.unflatten(0, (PLANES, -1))
    return planes.transpose(0, 1).contiguous()
