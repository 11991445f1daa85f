"""Which way of computing a configuration gets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.mode import Inference, Optimizer, Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.devices.base import Device
from cosmictagger.devices.card import prepare_card
from cosmictagger.devices.plain import PlainDevice
from cosmictagger.errors import ConfigurationError
from cosmictagger.networks.uresnet import UResNet, build
from cosmictagger.processes.together import Processes
from cosmictagger.training.optimizer import build_optimizer
from cosmictagger.training.precision import NUMBERS, Numbers


def choose_device(chosen: Configuration, processes: Processes | None = None) -> tuple[UResNet, Device]:
    """The network and what computes it."""
    if chosen.run.compute_mode is ComputeMode.GPU:
        prepare_card()
    numbers = NUMBERS[chosen.run.precision]
    network = build(chosen.network, numbers.activations, quantization_aware=chosen.mode.quantization_aware)
    settings = chosen.mode.optimizer if isinstance(chosen.mode, Train | Inference) else Optimizer()
    choice = _Choice(chosen, network.to(numbers.weights), numbers, settings, processes or Processes())
    return network, choice.device()


@dataclass(frozen=True, slots=True)
class _Choice:
    chosen: Configuration
    network: UResNet
    numbers: Numbers
    settings: Optimizer
    processes: Processes

    def device(self) -> Device:
        match self.chosen.run.compute_mode:
            case ComputeMode.CPU:
                # Here the plain way is the faster one: kernels are long, and oneDNN has nothing to gain from a program.
                return self._plain(torch.device("cpu"))
            case ComputeMode.GPU if self.numbers.scales_loss:
                return self._plain(torch.device("cuda", torch.cuda.current_device()))
            case ComputeMode.GPU:
                return self._engine()
            case ComputeMode.XPU:
                return self._plain(torch.device("xpu", torch.xpu.current_device()))
            case ComputeMode.HPU:
                from cosmictagger.devices.gaudi import gaudi

                device, name, mark_step = gaudi()
                return self._plain(device, mark_step, name)
            case ComputeMode.IPU:
                return self._graphcore()
            case other:
                raise ConfigurationError(
                    f"run.compute_mode={other.name} is not there. Choose CPU, GPU, XPU, HPU or IPU."
                )

    def _optimizer(self, family: Any = torch.optim) -> torch.optim.Optimizer | None:
        if not isinstance(self.chosen.mode, Train):
            return None
        return build_optimizer(self.settings.name, self.network.parameters(), self.settings.learning_rate, family)

    @property
    def _share(self) -> Callable[[nn.Module], AbstractContextManager[None]] | None:
        return self.processes.shared_buffers if self.processes.shares else None

    def _plain(
        self, device: torch.device, boundary: Callable[[], object] | None = None, name: str | None = None
    ) -> Device:
        return PlainDevice(
            self.network,
            self._optimizer(),
            self.settings.loss_balance_scheme,
            self.numbers,
            device,
            processes=self.processes,
            broadcast_buffers=self.chosen.run.broadcast_buffers,
            boundary=boundary,
            name=name,
        )

    def _engine(self) -> Device:
        from cosmictagger.devices.engine import EngineDevice

        return EngineDevice(
            self.network,
            self._optimizer(),
            self.settings.loss_balance_scheme,
            self.numbers,
            "cuda",
            self.settings.gradient_accumulation,
            instances=self.processes.size,
            share=self.processes.shared_buffers,
        )

    def _graphcore(self) -> Device:
        import poptorch
        from cosmictagger.devices.graphcore.device import GraphcoreDevice
        from cosmictagger.devices.graphcore.options import local_replicas, options_for
        from cosmictagger.devices.graphcore.stages import begin_stages

        run, settings = self.chosen.run, self.settings
        stages = begin_stages(self.network, run.stages)
        accumulation = settings.gradient_accumulation
        return GraphcoreDevice(
            self.network,
            self._optimizer(poptorch.optim),
            settings.name,
            settings.loss_balance_scheme,
            self.numbers,
            training_options=options_for(run, self.numbers, stages, accumulation=accumulation, training=True),
            inference_options=options_for(run, self.numbers, stages, training=False),
            accumulation=accumulation,
            replicas=local_replicas(run),
            share=self._share,
        )
