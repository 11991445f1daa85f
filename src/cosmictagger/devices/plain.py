"""Steps computed by torch as it is, operation by operation."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.devices.base import AnyBatch, Evaluation, Outcome, Placement
from cosmictagger.devices.inputs import tensors
from cosmictagger.devices.weights import load_weights, on_host
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.training.optimizer import set_rate
from cosmictagger.training.precision import Numbers
from cosmictagger.training.step import EvaluationStep, TrainingStep


class PlainDevice:
    """Torch's own eager execution on one device; also the only one that scales losses."""

    def __init__(
        self,
        network: UResNet,
        optimizer: torch.optim.Optimizer | None,
        scheme: LossBalanceScheme,
        numbers: Numbers,
        device: torch.device,
    ) -> None:
        self._network = network.to(device)
        self._optimizer = optimizer
        self._step = TrainingStep(network, scheme)
        self._evaluation = EvaluationStep(network, scheme)
        self._numbers, self._device = numbers, device
        self._scaler = torch.amp.GradScaler(device.type, enabled=numbers.scales_loss)
        self._updates = 0

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of some batches and update the weights once."""
        assert self._optimizer is not None
        set_rate(self._optimizer, rate)
        self._network.train()
        self._optimizer.zero_grad(set_to_none=True)
        watch = _StopWatch()
        losses, metrics = zip(*(self._gradients(batch, watch) for batch in batches), strict=True)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        watch.lap("optimizer")
        self._updates += 1
        return Outcome(
            loss=float(torch.stack(losses).mean()), metrics=torch.stack(metrics).mean(0).cpu(), seconds=watch.seconds
        )

    def _gradients(self, batch: AnyBatch, watch: _StopWatch) -> tuple[Tensor, Tensor]:
        metrics, loss = self._step(*tensors(batch, self._device))
        watch.lap("forward")
        self._scaler.scale(loss).backward()
        watch.lap("backward")
        return loss.detach(), metrics

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict, and compare with the labels."""
        self._network.eval()
        with torch.inference_mode():
            prediction, metrics, loss = self._evaluation(*tensors(batch, self._device))
        return Evaluation(loss=float(loss), metrics=metrics.cpu(), prediction=prediction.cpu())

    def state(self) -> dict[str, Any]:
        """Weights, and what optimizer and loss scale have learnt."""
        optimizer = {} if self._optimizer is None else self._optimizer.state_dict()
        state = {"state_dict": self._network.state_dict(), "optimizer": optimizer}
        return on_host(state | ({"loss_scale": self._scaler.state_dict()} if self._numbers.scales_loss else {}))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        load_weights(self._network, state["state_dict"])
        if self._optimizer is not None and state.get("optimizer"):
            self._optimizer.load_state_dict(dict(state["optimizer"]))
        if self._numbers.scales_loss and state.get("loss_scale"):
            self._scaler.load_state_dict(dict(state["loss_scale"]))

    def placement(self) -> Placement:
        """Where and how the work was really done."""
        first = next(self._network.parameters())
        peak = torch.cuda.max_memory_allocated(first.device) if first.is_cuda else None
        return Placement(
            device=str(first.device),
            backend="torch",
            tier="eager",
            precision=str(self._numbers),
            optimizer=type(self._optimizer).__name__ if self._optimizer is not None else "none",
            updates=self._updates,
            peak_memory_bytes=peak,
        )


class _StopWatch:
    """Seconds by what was done in them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
