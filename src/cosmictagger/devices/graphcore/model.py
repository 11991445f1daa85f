"""The network in PopTorch's form: the loss is part of forward."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor, nn

import poptorch
from cosmictagger.devices.inputs import scatter_padded
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.training.step import compare

Pixels: TypeAlias = tuple[Tensor, Tensor]
"""Indices and charges of filled pixels, (N, pixels) each: a hundredth of the images."""


class Scatter(nn.Module):
    """Scatters filled pixels into images."""

    shape: tuple[int, ...] = ()
    """Planes, rows and columns; constants of the compiled program."""

    def forward(self, index: Tensor, values: Tensor) -> Tensor:
        """(N, planes, rows, columns), zero elsewhere."""
        return scatter_padded(self.shape, index, values)


class LossInForward(nn.Module):
    """A network whose forward also takes the loss function and the labels."""

    def __init__(self, network: UResNet, accumulation: int = 1) -> None:
        super().__init__()
        self.network = network
        self.scatter = Scatter()
        self.accumulation = accumulation
        """PopTorch averages over replicas and accumulated batches; CosmicTagger sums over the latter."""

    def forward(
        self, images: Tensor | Pixels, loss_calculator: nn.Module, labels: Tensor, *truths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The metrics and the loss; if images are given as filled pixels, so are the labels."""
        if isinstance(images, Tensor):
            outputs = self.network.outputs(images)
        else:
            index, charge = images
            outputs = self.network.outputs(self.scatter(index, charge))
            # Scattered only here: with stages, the last one needs the labels.
            labels = self.scatter(index, labels)
        _, metrics, loss = compare(outputs, loss_calculator, labels, *truths)
        if self.accumulation > 1:
            loss = loss * self.accumulation
        return metrics, poptorch.identity_loss(loss, reduction="none")
