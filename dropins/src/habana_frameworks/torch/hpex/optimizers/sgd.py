"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from torch.optim import SGD


class FusedSGD(SGD):
    """torch's SGD."""

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(
            params, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov
        )
