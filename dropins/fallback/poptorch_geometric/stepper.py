"""Trains a model by PopTorch and a copy of it on the host, and compares them."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

import poptorch

__all__ = ["TrainingStepper"]


class TrainingStepper:
    """Two copies of a model that take the same training steps; forward returns outputs and, last, the loss."""

    def __init__(
        self,
        model: nn.Module,
        lr: float = 0.001,
        optimizer: Any = torch.optim.Adam,
        options: poptorch.Options | None = None,
        rtol: float = 1e-4,
        atol: float = 1e-4,
    ) -> None:
        self.cpu_model = model
        self.ipu_model = copy.deepcopy(model)
        self.rtol, self.atol = rtol, atol
        self.optimizer = optimizer(self.cpu_model.parameters(), lr=lr)
        self.training_model = poptorch.trainingModel(
            self.ipu_model, options, optimizer(self.ipu_model.parameters(), lr=lr)
        )

    def cpu_step(self, *batch: Any) -> Tensor:
        """One step of the copy on the host."""
        self.optimizer.zero_grad()
        loss: Tensor = self.cpu_model(*batch)[-1]
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def ipu_step(self, *batch: Any) -> Tensor:
        """One step of the wrapped copy."""
        loss: Tensor = self.training_model(*batch)[-1]
        return loss

    def run(self, num_steps: int, *batch: Any) -> None:
        """Take steps with both copies; raises if their losses or weights differ."""
        for _ in range(num_steps):
            torch.testing.assert_close(
                self.ipu_step(*batch).squeeze(), self.cpu_step(*batch), rtol=self.rtol, atol=self.atol
            )
        theirs = dict(self.ipu_model.named_parameters())
        for name, parameter in self.cpu_model.named_parameters():
            torch.testing.assert_close(theirs[name].data, parameter.data, rtol=self.rtol, atol=self.atol)
