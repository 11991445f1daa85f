"""The network of a configuration, with what every executor needs to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.mode import Inference, Optimizer, Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBER_TYPES, NumberTypes


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkSetup:
    """A new network, its precision and its optimizer settings."""

    network: UResNet
    numbers: NumberTypes
    settings: Optimizer
    processes: Processes
    trains: bool

    @property
    def scheme(self) -> LossBalanceScheme:
        """How the loss weights pixels."""
        return self.settings.loss_balance_scheme

    def optimizer(self, family: ModuleType = torch.optim) -> torch.optim.Optimizer | None:
        """The configured optimizer from a module like ``torch.optim``; None unless the run trains."""
        if not self.trains:
            return None
        return build_optimizer(self.settings.name, self.network.parameters(), self.settings.learning_rate, family)


def network_setup(config: Configuration, processes: Processes | None = None) -> NetworkSetup:
    """Build the configured network in the types of its precision."""
    numbers = NUMBER_TYPES[config.run.precision]
    network = build(config.network, numbers.activations, quantization_aware=config.mode.quantization_aware)
    return NetworkSetup(
        network=network.to(numbers.weights),
        numbers=numbers,
        settings=config.mode.optimizer if isinstance(config.mode, Train | Inference) else Optimizer(),
        processes=processes or Processes(),
        trains=isinstance(config.mode, Train),
    )
