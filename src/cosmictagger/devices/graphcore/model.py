"""The network as PopTorch wants it: the loss is part of forward."""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor, nn

import poptorch
from cosmictagger.devices.inputs import scatter_padded
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.training.step import compare

Pixels: TypeAlias = tuple[Tensor, Tensor]
"""Places and charges of filled pixels, (N, pixels) each: a hundredth of the images, which are made of them on the device."""


class Scatter(nn.Module):
    """Makes images of filled pixels."""

    shape: tuple[int, ...] = ()
    """Planes, rows and columns; they are compiled in."""

    def forward(self, index: Tensor, values: Tensor) -> Tensor:
        """(N, planes, rows, columns), zero elsewhere."""
        return scatter_padded(self.shape, index, values)


class LossInForward(nn.Module):
    """A network that is also given what to compute its loss with, and what to compare with."""

    def __init__(self, network: UResNet, accumulation: int = 1) -> None:
        super().__init__()
        self.network = network
        self.scatter = Scatter()
        self.accumulation = accumulation
        """PopTorch takes the mean over replicas and accumulated batches alike; CosmicTagger sums over the latter."""

    def forward(
        self, images: Tensor | Pixels, loss_calculator: nn.Module, labels: Tensor, *truths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The metrics, and the loss to go back from; with images as filled pixels, the labels are those of the same ones."""
        if isinstance(images, Tensor):
            outputs = self.network.outputs(images)
        else:
            index, charge = images
            outputs = self.network.outputs(self.scatter(index, charge))
            # Only here: where the network is in stages, labels are wanted in the last one.
            labels = self.scatter(index, labels)
        _, metrics, loss = compare(outputs, loss_calculator, labels, *truths)
        if self.accumulation > 1:
            loss = loss * self.accumulation
        return metrics, poptorch.identity_loss(loss, reduction="none")
