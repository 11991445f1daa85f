"""The network of a configuration, with what every executor needs to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import torch

from cosmictagger.configuration.choices import CAPTURED, LossBalanceScheme
from cosmictagger.configuration.mode import Inference, Optimizer, Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.optimizer import build_optimizer, is_newer
from cosmictagger.training.precision import NumberTypes, number_types


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
        settings = self.settings
        return build_optimizer(
            settings.name, self.network.parameters(), settings.learning_rate, family, newer=is_newer(settings)
        )


def reason_for_eager(config: Configuration) -> str | None:
    """Why steps of a configuration cannot be programs of Pilotage; None if they can."""
    if not isinstance(config.mode, Train):
        return None
    if number_types(config.run.precision, trains=True).scales_loss:
        return "only the plain loop scales losses"
    if config.mode.optimizer.name not in CAPTURED:
        return f"{config.mode.optimizer.name.name} cannot become part of a program"
    return None


def network_setup(
    config: Configuration, processes: Processes | None = None, *, rounds_at_random: bool = False
) -> NetworkSetup:
    """Build the configured network in the types of its precision."""
    trains = isinstance(config.mode, Train)
    numbers = number_types(config.run.precision, trains=trains, rounds_at_random=rounds_at_random)
    network = build(config.network, numbers.activations, quantization_aware=config.mode.quantization_aware)
    return NetworkSetup(
        network=network.to(numbers.weights),
        numbers=numbers,
        settings=config.mode.optimizer if isinstance(config.mode, Train | Inference) else Optimizer(),
        processes=processes or Processes(),
        trains=trains,
    )
