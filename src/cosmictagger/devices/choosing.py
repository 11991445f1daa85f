"""Which way of computing a configuration gets."""

from __future__ import annotations

import torch

from cosmictagger.configuration.choices import ComputeMode, LossBalanceScheme
from cosmictagger.configuration.mode import Inference, Optimizer, Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.base import Device
from cosmictagger.devices.plain import PlainDevice
from cosmictagger.errors import ConfigurationError
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBERS


def choose_device(chosen: Configuration) -> tuple[UResNet, Device]:
    """The network and what computes it."""
    numbers = NUMBERS[chosen.run.precision]
    network = build(chosen.network, numbers.activations).to(numbers.weights)
    settings = chosen.mode.optimizer if isinstance(chosen.mode, Train | Inference) else Optimizer()
    optimizer = None
    if isinstance(chosen.mode, Train):
        optimizer = build_optimizer(settings.name, network.parameters(), settings.learning_rate)
    return network, _device(chosen, network, optimizer, settings.loss_balance_scheme, settings.gradient_accumulation)


def _device(
    chosen: Configuration,
    network: UResNet,
    optimizer: torch.optim.Optimizer | None,
    scheme: LossBalanceScheme,
    accumulation: int,
) -> Device:
    numbers = NUMBERS[chosen.run.precision]
    match chosen.run.compute_mode:
        case ComputeMode.CPU:
            # Here the plain way is the faster one: kernels are long, and oneDNN has nothing to gain from a program.
            return PlainDevice(network, optimizer, scheme, numbers, torch.device("cpu"))
        case ComputeMode.GPU if numbers.scales_loss:
            return PlainDevice(network, optimizer, scheme, numbers, torch.device("cuda"))
        case ComputeMode.GPU:
            from cosmictagger.devices.engine import EngineDevice

            torch.backends.cudnn.benchmark = True
            return EngineDevice(network, optimizer, scheme, numbers, "cuda", accumulation)
        case other:
            raise ConfigurationError(f"run.compute_mode={other.name} is not there yet. Choose CPU or GPU.")
