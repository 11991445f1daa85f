"""A module together with a loss function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from pilotage.capture.loss.returned import require_scalar
from pilotage.capture.loss.search import mark_loss
from pilotage.errors import LossError


class WithLoss(nn.Module):
    """A module and its loss: the last argument of a call is the target."""

    def __init__(self, module: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        super().__init__()
        self.module = module
        self.loss = loss

    def forward(self, *arguments: Any) -> tuple[Any, Tensor]:
        """The module's output, and its loss against the last argument."""
        *inputs, target = arguments
        output = self.module(*inputs)
        loss = self.loss(output, target)
        if not isinstance(loss, Tensor):
            raise LossError(f"loss= returned {type(loss).__name__}, and backward starts from a tensor of one element.")
        require_scalar(loss, "What loss= returned")
        return output, mark_loss(loss)
