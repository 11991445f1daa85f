"""The configured optimizer, of PopTorch's kind: its state stays on the device."""

from __future__ import annotations

from collections.abc import Iterable

import torch

import poptorch
from cosmictagger.configuration.choices import OptimizerKind
from cosmictagger.training.optimizer import RMSPROP_EPSILON


def build_poptorch_optimizer(
    kind: OptimizerKind, parameters: Iterable[torch.nn.Parameter], rate: float
) -> torch.optim.Optimizer:
    """The same optimizers as everywhere; a rate that is given explicitly may change after compilation."""
    match kind:
        case OptimizerKind.adam:
            return poptorch.optim.Adam(parameters, lr=rate)
        case OptimizerKind.rmsprop:
            return poptorch.optim.RMSprop(parameters, lr=rate, eps=RMSPROP_EPSILON)
