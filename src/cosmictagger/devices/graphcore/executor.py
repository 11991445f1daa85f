"""Steps executed by PopTorch: loss, backward and update in one compiled model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

import pilotage
import poptorch
from cosmictagger.configuration.choices import LossBalanceScheme, OptimizerKind
from cosmictagger.configuration.root import Configuration
from cosmictagger.data.events import AnyBatch, PaddedBatch
from cosmictagger.devices.executor import Evaluation, Outcome, Placement
from cosmictagger.devices.graphcore.model import LossInForward
from cosmictagger.devices.graphcore.optimizer_state import SLOTS, as_poptorch, as_torch, has_stepped
from cosmictagger.devices.graphcore.options import local_replicas, options_for
from cosmictagger.devices.graphcore.stages import begin_stages
from cosmictagger.devices.inputs import joined_tensors, tensors, truth_tensors
from cosmictagger.devices.observed_precision import ObservedPrecision
from cosmictagger.devices.setup import network_setup
from cosmictagger.devices.weights import load_weights, on_host
from cosmictagger.errors import DeviceError
from cosmictagger.networks.uresnet import UResNet
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.process_log import LOGGER
from cosmictagger.training.loss import BalancedLoss
from cosmictagger.training.optimizer import set_rate
from cosmictagger.training.precision import NumberTypes
from cosmictagger.training.step import EvaluationStep

HOST = torch.device("cpu")


class PopTorchExecutor:
    """A network wrapped with ``poptorch.trainingModel`` and ``poptorch.inferenceModel``.

    Large because it holds two wrapped models of one network, and keeps their weights and the optimizer's state equal.
    """

    def __init__(
        self,
        network: UResNet,
        optimizer: torch.optim.Optimizer | None,
        kind: OptimizerKind,
        scheme: LossBalanceScheme,
        numbers: NumberTypes,
        *,
        training_options: poptorch.Options,
        inference_options: poptorch.Options,
        accumulation: int = 1,
        replicas: int = 1,
        share: Callable[[nn.Module], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.network, self._optimizer, self._kind = network, optimizer, kind
        self._accumulation, self._replicas, self._share = accumulation, replicas, share
        self._loss_calculator = BalancedLoss(scheme)
        self._observed = ObservedPrecision(network, numbers)
        self._module = LossInForward(network, accumulation)
        network.eval()
        self._inference = _wrapped(poptorch.inferenceModel(EvaluationStep(network, scheme), inference_options))
        network.train()
        self._training: poptorch.PoplarExecutor | None = None
        if optimizer is not None:
            self._training = _wrapped(poptorch.trainingModel(self._module, training_options, optimizer))
        self._updates = self._updates_before = 0
        self._weights_are_new = False
        self._seconds = 0.0

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Run one call of the training model on batches joined in the order of their accumulation."""
        assert self._training is not None
        assert self._optimizer is not None
        given = self._arguments(batches)
        set_rate(self._optimizer, rate)
        # PopTorch reads the optimizer only here.
        self._training.setOptimizer(self._optimizer)
        compilation = self._compile(given)
        metrics, loss = self._training(*given)
        self._updates += 1
        self._weights_are_new = True
        return Outcome(
            loss=float(loss.float().mean()) / self._accumulation,
            metrics=_averaged(metrics, self._accumulation * self._replicas),
            seconds={"compilation": compilation} if compilation else {},
        )

    def _arguments(self, batches: Sequence[AnyBatch]) -> tuple[Any, ...]:
        """The arguments of ``forward``; filled pixels become images on the device."""
        first = batches[0]
        if len(batches) == 1 and isinstance(first, PaddedBatch):
            self._module.scatter.shape = first.shape[1:]
            index, charge, labels = map(torch.from_numpy, (first.index, first.charge, first.label))
            return ((index, charge), self._loss_calculator, labels, *truth_tensors(first, HOST))
        images, labels, *truths = joined_tensors(batches, HOST)
        return (images, self._loss_calculator, labels, *truths)

    def _compile(self, given: tuple[Any, ...]) -> float:
        """Compile before the first step; returns the seconds it took."""
        assert self._training is not None
        if self._training.isCompiled():
            return 0.0
        start = time.perf_counter()
        self.network.train()
        self._training.compile(*given)
        took = time.perf_counter() - start
        self._seconds += took
        LOGGER.info("Compilation before the first step took %.2f s", took)
        return took

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict with the inference model and compare with the labels."""
        given = tensors(batch, HOST)
        if self._training is not None and self._weights_are_new:
            self._training.copyWeightsToHost()
        with nullcontext() if self._share is None else self._share(self.network):
            compilation = self._compile_inference(given)
            if (self._weights_are_new or self._share is not None) and not compilation:
                self._inference.copyWeightsToDevice()
            prediction, metrics, loss = self._inference(*given)
        self._weights_are_new = False
        return Evaluation(
            loss=float(loss.float().mean()),
            metrics=_averaged(metrics, self._replicas),
            prediction=prediction,
            compilation=compilation,
        )

    def _compile_inference(self, given: tuple[Tensor, ...]) -> float:
        if self._inference.isCompiled():
            return 0.0
        start = time.perf_counter()
        self.network.eval()
        self._inference.compile(*given)
        self.network.train()
        took = time.perf_counter() - start
        self._seconds += took
        return took

    def state(self) -> dict[str, Any]:
        """The weights and the state of the optimizer."""
        optimizer_state: dict[str, Any] = {}
        if self._training is not None and self._training.isCompiled():
            self._training.copyWeightsToHost()
        if self._optimizer is not None and self._optimizer.state_dict().get("ipu_state"):
            updates = self._updates_before + self._updates
            optimizer_state = as_torch(self._optimizer.state_dict(), self._kind, self._module, updates)
        return on_host({"state_dict": self.network.state_dict(), "optimizer": optimizer_state})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        load_weights(self.network, state["state_dict"])
        for model in (self._training, self._inference):
            if model is not None and model.isCompiled():
                model.copyWeightsToDevice()
        if self._optimizer is not None and state.get("optimizer"):
            optimizer_state, own = state["optimizer"], self._optimizer.state_dict()
            self._optimizer.load_state_dict(as_poptorch(optimizer_state, own, self._kind, self._module))
            self._updates_before = int(
                max((float(each["step"]) for each in optimizer_state["state"].values()), default=0)
            )

    def placement(self) -> Placement:
        """Where and how the work was actually done."""
        model = self._inference if self._training is None else self._training
        record = pilotage.record_of(model)
        hardware = poptorch.ipuHardwareIsAvailable()
        ran = sorted(record.steps) if record is not None else [("IPU" if hardware else "unknown", "compiled")]
        return Placement(
            device=", ".join(sorted({device for device, _ in ran})) or "not run",
            backend=f"poptorch {poptorch.__version__}, {'IPU' if hardware else 'no IPU: Pilotage behind the drop-in'}",
            tier=", ".join(sorted({tier for _, tier in ran})) or "not run",
            precision=self._observed.precision,
            optimizer=type(self._optimizer).__name__ if self._optimizer is not None else "none",
            updates=self._updates if record is None else record.updates,
            compilation_seconds=self._seconds,
            compiled=model.isCompiled(),
            replicas=self._replicas,
            problems=(*self._observed.problems, *self._lost_updates()),
        )

    def _lost_updates(self) -> tuple[str, ...]:
        """A problem if the configured optimizer never stepped."""
        if self._optimizer is None or not self._updates or not SLOTS[self._kind]:
            # An optimizer without state, such as SGD, shows nothing of its steps.
            return ()
        if has_stepped(self._optimizer.state_dict()):
            return ()
        name = type(self._optimizer).__name__
        return (f"optimizer: {name} was requested but never stepped: the wrapper trains with another one",)


def poptorch_executor(config: Configuration, processes: Processes | None = None) -> PopTorchExecutor:
    """The configured network, wrapped with PopTorch's options for the configuration."""
    setup, run = network_setup(config, processes, rounds_at_random=True), config.run
    stages = begin_stages(setup.network, run.stages)
    accumulation = setup.settings.gradient_accumulation
    return PopTorchExecutor(
        setup.network,
        setup.optimizer(poptorch.optim),
        setup.settings.name,
        setup.scheme,
        setup.numbers,
        training_options=options_for(run, setup.numbers, stages, accumulation=accumulation, training=True),
        inference_options=options_for(run, setup.numbers, stages, training=False),
        accumulation=accumulation,
        replicas=local_replicas(run),
        share=setup.processes.shared_buffers if setup.processes.is_distributed else None,
    )


def _wrapped(model: object) -> poptorch.PoplarExecutor:
    if not isinstance(model, poptorch.PoplarExecutor):
        raise DeviceError(
            f"PopTorch returned a bare {type(model).__name__}, which would train on the host. Do not unwrap the model."
        )
    return model


def _averaged(metrics: Tensor, parts: int) -> Tensor:
    """The mean over accumulated batches and replicas."""
    return metrics.view(parts, -1).float().mean(0)
