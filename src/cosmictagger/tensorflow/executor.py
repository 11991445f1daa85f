"""Training and evaluation in TensorFlow, behind the interface of every other device."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
import torch

from cosmictagger.configuration.network import Network
from cosmictagger.data.events import AnyBatch, Array
from cosmictagger.devices.executor import Evaluation, Outcome, Placement
from cosmictagger.devices.inputs import tensors
from cosmictagger.devices.setup import NetworkSetup
from cosmictagger.devices.weights import load_weights, on_host
from cosmictagger.tensorflow.cluster import EXCHANGE, Cluster
from cosmictagger.tensorflow.layout import to_tensorflow, to_torch
from cosmictagger.tensorflow.network import UResNet2D
from cosmictagger.tensorflow.optimizer import VariableOptimizer
from cosmictagger.tensorflow.step import Steps
from cosmictagger.training.precision import type_name


class TensorflowExecutor:
    """Runs each step as graphs of TensorFlow.

    A torch network on the host gives the initial weights, and their names and order in checkpoints, so that a run can
    continue in the other framework.
    """

    def __init__(
        self, setup: NetworkSetup, network: Network, *, broadcast_buffers: bool = True, problems: tuple[str, ...] = ()
    ) -> None:
        self.network, self._processes = setup.network, setup.processes
        self._cluster = Cluster(setup.processes)
        self._variables = UResNet2D.of(network, setup.network, type_name(setup.numbers.activations))
        self._steps = Steps(self._variables, setup.scheme)
        optimizer = setup.optimizer()
        self._optimizer = None if optimizer is None else VariableOptimizer(optimizer, self._variables.parameters)
        self._precision, self._problems = str(setup.numbers), problems
        self._broadcasts = broadcast_buffers and setup.processes.is_distributed
        self._compilation, self._updates = 0.0, 0

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of the batches and update the weights once."""
        assert self._optimizer is not None
        given = [_arrays(batch) for batch in batches]
        compilation = self._steps.trace_gradients(*given[0])
        self._compilation += compilation
        if self._broadcasts:
            self._assign_statistics(self._processes.broadcast(self._statistics()))
        start = time.perf_counter()
        parts = [self._steps.gradients(*each) for each in given]
        numbers = np.mean([(*part.metrics.numpy(), part.loss.numpy()) for part in parts], 0)
        computed = time.perf_counter()
        gradients = [tf.add_n(each) for each in zip(*(part.gradients for part in parts), strict=True)]
        with self._processes.exchanging("adding up gradients"):
            self._optimizer.update(self._cluster.mean(gradients), rate)
        self._updates += 1
        seconds = {"backward": computed - start, "optimizer": time.perf_counter() - computed}
        return Outcome(
            loss=float(numbers[-1]),
            metrics=torch.from_numpy(numbers[:-1]).float(),
            seconds=seconds | ({"compilation": compilation} if compilation else {}),
        )

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict and compare with the labels; all processes use the statistics of the first."""
        given = _arrays(batch)
        compilation = self._steps.trace_evaluation(*given)
        self._compilation += compilation
        with self._shared_statistics():
            prediction, metrics, loss = self._steps.evaluate(*given)
        return Evaluation(
            loss=float(loss),
            metrics=torch.from_numpy(metrics.numpy().copy()),
            prediction=torch.from_numpy(prediction.numpy().copy()),
            compilation=compilation,
        )

    @contextmanager
    def _shared_statistics(self) -> Iterator[None]:
        if not self._processes.is_distributed:
            yield
            return
        own = self._statistics()
        self._assign_statistics(self._processes.broadcast(own))
        try:
            yield
        finally:
            self._assign_statistics(own)

    def _statistics(self) -> dict[str, torch.Tensor]:
        return {name: to_torch(each.numpy()) for name, each in self._variables.statistics.items()}

    def _assign_statistics(self, statistics: Mapping[str, torch.Tensor]) -> None:
        for name, values in statistics.items():
            self._variables.statistics[name].assign(to_tensorflow(values))

    def state(self) -> dict[str, Any]:
        """The weights and the state of the optimizer, as the torch trainer stores them."""
        self.network.load_state_dict(self._variables.state_dict())
        optimizer = {} if self._optimizer is None else self._optimizer.state()
        return on_host({"state_dict": self.network.state_dict(), "optimizer": optimizer})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint of either framework."""
        load_weights(self.network, state["state_dict"])
        self._variables.load(self.network.state_dict())
        if self._optimizer is not None and state.get("optimizer"):
            self._optimizer.restore(state["optimizer"])

    def placement(self) -> Placement:
        """Where and how the work was actually done."""
        first = next(iter(self._variables.parameters.values()))
        version = f"tensorflow {tf.__version__}"
        return Placement(
            device=first.device,
            backend=f"{version}, {EXCHANGE}" if self._processes.is_distributed else version,
            tier="graph",
            precision=self._precision,
            optimizer="none" if self._optimizer is None else self._optimizer.name,
            updates=self._updates,
            compilation_seconds=self._compilation,
            compiled=True,
            problems=self._problems,
        )


def _arrays(batch: AnyBatch) -> tuple[Array, Array]:
    """Images and labels, both (N, 3, H, W)."""
    image, label, *_ = tensors(batch, torch.device("cpu"))
    return image.numpy(), label.numpy()
