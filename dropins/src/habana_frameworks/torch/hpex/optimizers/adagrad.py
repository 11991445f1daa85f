"""Adagrad."""

from __future__ import annotations

from typing import Any

from torch.optim import Adagrad


class FusedAdagrad(Adagrad):
    """torch's Adagrad with the vendor's signature."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
    ) -> None:
        super().__init__(params, lr, lr_decay, weight_decay, initial_accumulator_value, eps)
