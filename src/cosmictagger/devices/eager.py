"""Steps executed eagerly by torch."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.events import AnyBatch
from cosmictagger.devices.executor import Evaluation, Outcome, Placement
from cosmictagger.devices.inputs import tensors
from cosmictagger.devices.observed_precision import ObservedPrecision
from cosmictagger.devices.setup import network_setup
from cosmictagger.devices.weights import load_weights, on_host
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.optimizer import load_state, set_rate
from cosmictagger.training.precision import NumberTypes
from cosmictagger.training.step import EvaluationStep, TrainingStep

_BUFFER_OPTIONS = ("forward_sync_buffers", "broadcast_buffers")


class EagerExecutor:
    """Eager execution on one device; the only executor that scales losses.

    With several processes, torch's DistributedDataParallel averages their gradients, and all processes evaluate with
    the same statistics. ``boundary`` is called after each backward and each update, for devices that collect
    operations until they are made to run them. ``name`` is the device's own name for the report: a card may be
    emulated. ``reason`` says there why steps are executed eagerly.

    Large because eager execution does here what other executors leave to a program: it scales losses, exchanges
    gradients and marks the ends of graphs.
    """

    def __init__(
        self,
        network: UResNet,
        optimizer: torch.optim.Optimizer | None,
        scheme: LossBalanceScheme,
        numbers: NumberTypes,
        device: torch.device,
        *,
        processes: Processes | None = None,
        broadcast_buffers: bool = True,
        boundary: Callable[[], object] | None = None,
        name: str | None = None,
        reason: str = "",
    ) -> None:
        self.network, self._name, self._reason = network.to(device), name, reason
        self._optimizer = optimizer
        self._evaluation = EvaluationStep(network, scheme)
        self._step: nn.Module = TrainingStep(network, scheme)
        self._parallel: DistributedDataParallel | None = None
        self._processes = processes or Processes()
        if self._processes.is_distributed and optimizer is not None:
            with self._processes.exchanging("broadcasting the initial weights"):
                self._step = self._parallel = DistributedDataParallel(self._step, **_buffers(broadcast_buffers))
        self._numbers, self._device, self._boundary = numbers, device, boundary
        self._observed = ObservedPrecision(network, numbers)
        self._scaler = torch.amp.GradScaler(device.type, enabled=numbers.scales_loss)
        self._updates, self._is_resumed = 0, False

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of the batches and update the weights once."""
        assert self._optimizer is not None
        set_rate(self._optimizer, rate)
        self.network.train()
        if self._parallel is not None and self._is_resumed:
            self._rehearse(batches[0])
        self._is_resumed = False
        self._optimizer.zero_grad(set_to_none=True)
        watch = _StopWatch()
        last = len(batches) - 1
        found = [self._gradients(batch, watch, last=number == last) for number, batch in enumerate(batches)]
        losses, metrics = zip(*found, strict=True)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        # One tensor, before the boundary, so that reading it does not start another graph.
        numbers = torch.cat((torch.stack(metrics).mean(0), torch.stack(losses).mean().view(1)))
        self._mark()
        *found_metrics, loss = numbers.tolist()
        watch.lap("optimizer")
        self._updates += 1
        return Outcome(loss=loss, metrics=torch.tensor(found_metrics), seconds=watch.seconds)

    def _gradients(self, batch: AnyBatch, watch: _StopWatch, *, last: bool) -> tuple[Tensor, Tensor]:
        with self._processes.exchanging("adding up gradients"), self._synchronized(last):
            metrics, loss = self._step(*tensors(batch, self._device))
            watch.lap("forward")
            self._scaler.scale(loss).backward()
            self._mark()
        watch.lap("backward")
        return loss.detach(), metrics

    def _rehearse(self, batch: AnyBatch) -> None:
        """Compute gradients that are not used, so that a resumed run exchanges its first ones like an unbroken run.

        DistributedDataParallel sorts the gradients in its buckets after the first backward, and a gradient's position
        in its bucket determines in which order the processes' values are added.
        """
        # Each process has its own statistics again afterwards.
        with self._processes.shared_buffers(self.network), self._processes.exchanging("adding up gradients"):
            _, loss = self._step(*tensors(batch, self._device))
            loss.backward()
            self._mark()

    def _synchronized(self, last: bool) -> AbstractContextManager[object]:
        """Exchange the gradients of several batches once, with the last."""
        return nullcontext() if self._parallel is None or last else self._parallel.no_sync()

    def _mark(self) -> None:
        if self._boundary is not None:
            self._boundary()

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict and compare with the labels."""
        self.network.eval()
        with self._processes.shared_buffers(self.network):
            with torch.inference_mode():
                prediction, metrics, loss = self._evaluation(*tensors(batch, self._device))
            self._mark()
        return Evaluation(loss=float(loss), metrics=metrics.cpu(), prediction=prediction.cpu())

    def state(self) -> dict[str, Any]:
        """The weights and the state of optimizer and loss scaler."""
        optimizer = {} if self._optimizer is None else self._optimizer.state_dict()
        state = {"state_dict": self.network.state_dict(), "optimizer": optimizer}
        return on_host(state | ({"loss_scale": self._scaler.state_dict()} if self._numbers.scales_loss else {}))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        load_weights(self.network, state["state_dict"])
        if self._optimizer is not None and state.get("optimizer"):
            load_state(self._optimizer, state["optimizer"])
        if self._numbers.scales_loss and state.get("loss_scale"):
            self._scaler.load_state_dict(dict(state["loss_scale"]))
        self._is_resumed = True

    def placement(self) -> Placement:
        """Where and how the work was actually done."""
        first = next(self.network.parameters())
        peak = torch.cuda.max_memory_allocated(first.device) if first.is_cuda else None
        return Placement(
            device=f"{first.device} ({self._name})" if self._name else str(first.device),
            backend="torch" if self._parallel is None else "torch, DistributedDataParallel",
            tier="eager",
            precision=self._observed.precision,
            optimizer=type(self._optimizer).__name__ if self._optimizer is not None else "none",
            updates=self._updates,
            peak_memory_bytes=peak,
            reason=self._reason,
            problems=self._observed.problems,
        )


def eager_executor(
    config: Configuration,
    device: torch.device,
    processes: Processes | None = None,
    *,
    boundary: Callable[[], object] | None = None,
    name: str | None = None,
    reason: str = "",
) -> EagerExecutor:
    """The configured network, executed eagerly on a device."""
    setup = network_setup(config, processes)
    return EagerExecutor(
        setup.network,
        setup.optimizer(),
        setup.scheme,
        setup.numbers,
        device,
        processes=setup.processes,
        broadcast_buffers=config.run.broadcast_buffers,
        boundary=boundary,
        name=name,
        reason=reason,
    )


def _buffers(broadcast: bool) -> dict[str, Any]:
    """The argument of DistributedDataParallel that turns broadcasting off; torch 2.13 renamed it."""
    names = inspect.signature(DistributedDataParallel).parameters
    return {} if broadcast else {next(name for name in _BUFFER_OPTIONS if name in names): False}


class _StopWatch:
    """Measures seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now
