"""The network as PopTorch wants it: the loss is part of forward."""

from __future__ import annotations

from torch import Tensor, nn

import poptorch
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.training.step import judged


class LossInForward(nn.Module):
    """A network that is also given what to compute its loss with, and what to compare with."""

    def __init__(self, network: UResNet, accumulation: int = 1) -> None:
        super().__init__()
        self.network = network
        self.accumulation = accumulation
        """PopTorch takes the mean over replicas and accumulated batches alike; CosmicTagger sums over the latter."""

    def forward(
        self, images: Tensor, loss_calculator: nn.Module, labels: Tensor, *truths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The metrics, and the loss to go back from."""
        _, metrics, loss = judged(self.network, loss_calculator, images, labels, *truths)
        if self.accumulation > 1:
            loss = loss * self.accumulation
        return metrics, poptorch.identity_loss(loss, reduction="none")
