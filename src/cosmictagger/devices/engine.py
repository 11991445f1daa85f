"""Steps executed by Pilotage: forward, loss, backward and update as one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

import pilotage
from cosmictagger.configuration.choices import LossBalanceScheme
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.events import AnyBatch
from cosmictagger.devices.executor import Evaluation, Outcome, Placement
from cosmictagger.devices.inputs import joined_tensors, tensors
from cosmictagger.devices.observed_precision import ObservedPrecision
from cosmictagger.devices.optimizer_state import as_slots, as_torch
from cosmictagger.devices.setup import network_setup
from cosmictagger.devices.weights import load_weights, on_host
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.processes.process_group import Processes
from cosmictagger.training.optimizer import set_rate
from cosmictagger.training.precision import NumberTypes
from cosmictagger.training.step import EvaluationStep, TrainingStep


class MarkedStep(TrainingStep):
    """A training step that marks its loss for the engine."""

    def __init__(self, network: UResNet, scheme: LossBalanceScheme, instances: int) -> None:
        super().__init__(network, scheme)
        self.instances = instances
        """The engine sums over accumulated batches and over instances; we want the mean over instances."""

    def forward(self, image: Tensor, label: Tensor, *truths: Tensor) -> tuple[Tensor, Tensor]:
        """The metrics and the loss."""
        metrics, loss = super().forward(image, label, *truths)
        return metrics, pilotage.mark_loss(loss if self.instances == 1 else loss / self.instances)


class EngineExecutor:
    """Executes each step as one program; on a card it is replayed as a CUDA graph.

    Large because it holds two programs of one network, and what a restart and the report need of them.
    """

    def __init__(
        self,
        network: UResNet,
        optimizer: torch.optim.Optimizer | None,
        scheme: LossBalanceScheme,
        numbers: NumberTypes,
        backend: str,
        accumulation: int = 1,
        *,
        instances: int = 1,
        share: Callable[[nn.Module], AbstractContextManager[None]] | None = None,
        reason: str = "",
    ) -> None:
        self.network, self._optimizer, self._reason = network, optimizer, reason
        self._observed, self._share = ObservedPrecision(network, numbers), share
        self._backend, self._accumulation, self._instances = backend, accumulation, instances
        self._device = torch.device(backend)
        network.eval()
        # Results must not depend on when a faster executable is ready, so the tier is pinned.
        self._evaluation = pilotage.inference(EvaluationStep(network, scheme), backend=backend, tier="graph")
        network.train()
        self._step = MarkedStep(network, scheme, instances)
        self._training = None
        if optimizer is not None:
            self._training = pilotage.training(
                self._step,
                optimizer,
                backend=backend,
                tier="graph",
                gradient_accumulation=accumulation,
                reduction="sum",
                outputs="all",
                nonfinite_loss="ignore",
                distributed=instances > 1,
                # Each instance keeps its own statistics, and a checkpoint holds those of all instances.
                broadcast_buffers=instances == 1,
            )
        self._restored: dict[str, Any] | None = None

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of the batches and update the weights once."""
        assert self._training is not None
        assert self._optimizer is not None
        given = joined_tensors(batches, self._device)
        compilation = self._compile(given)
        set_rate(self._optimizer, rate)
        metrics, loss = self._training(*given)
        return Outcome(
            loss=float(loss.mean()) * self._instances,
            metrics=metrics.view(self._accumulation, -1).mean(0).cpu(),
            seconds={"compilation": compilation} if compilation else {},
        )

    def _compile(self, given: list[Tensor]) -> float:
        """Compile before the first step; returns the seconds it took."""
        assert self._training is not None
        if self._training.record.compilations:
            return 0.0
        start = time.perf_counter()
        self._training.compile(*given)
        if self._restored is not None:
            assert self._optimizer is not None
            self._training.load_optimizer_state_dict(as_slots(self._restored, self._step, self._optimizer))
            self._restored = None
        return time.perf_counter() - start

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict and compare with the labels."""
        before = self._evaluation.record.compilation_seconds
        with torch.inference_mode(False), nullcontext() if self._share is None else self._share(self.network):
            prediction, metrics, loss = self._evaluation(*tensors(batch, self._device))
        return Evaluation(
            loss=float(loss),
            metrics=metrics.cpu(),
            prediction=prediction.cpu(),
            compilation=self._evaluation.record.compilation_seconds - before,
        )

    def state(self) -> dict[str, Any]:
        """The weights and the state of the optimizer."""
        optimizer_state: dict[str, Any] = self._restored or {}
        if self._training is not None and self._optimizer is not None and self._training.record.updates:
            optimizer_state = as_torch(self._training.optimizer_state_dict(), self._step, self._optimizer)
        return on_host({"state_dict": self.network.state_dict(), "optimizer": optimizer_state})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        load_weights(self.network, state["state_dict"])
        self._restored = dict(state["optimizer"]) if state.get("optimizer") else None

    def placement(self) -> Placement:
        """Where and how the work was actually done, from the engine's record."""
        model = self._evaluation if self._training is None else self._training
        ran = sorted(model.record.steps) or [(self._backend, "not run")]
        return Placement(
            device=", ".join(sorted({device for device, _ in ran})),
            backend=f"pilotage {self._backend}",
            tier=", ".join(sorted({tier for _, tier in ran})),
            precision=self._observed.precision,
            optimizer=type(self._optimizer).__name__ if self._optimizer is not None else "none",
            updates=model.record.updates,
            compilation_seconds=model.record.compilation_seconds,
            peak_memory_bytes=torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None,
            compiled=True,
            reason=self._reason,
            problems=self._observed.problems,
        )


def engine_executor(
    config: Configuration, backend: str, processes: Processes | None = None, *, reason: str = ""
) -> EngineExecutor:
    """The configured network, executed as programs of Pilotage."""
    setup = network_setup(config, processes)
    return EngineExecutor(
        setup.network,
        setup.optimizer(),
        setup.scheme,
        setup.numbers,
        backend,
        setup.settings.gradient_accumulation,
        instances=setup.processes.size,
        share=setup.processes.shared_buffers,
        reason=reason,
    )
