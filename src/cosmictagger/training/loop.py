"""The training loop: validate, train, record, save."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from cosmictagger.data.events import AnyBatch
from cosmictagger.devices.executor import Executor, Outcome
from cosmictagger.devices.inputs import tensors
from cosmictagger.devices.loading import BatchLoader
from cosmictagger.processes.consistency import ConsistencyCheck
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints
from cosmictagger.records.original_files import in_order, parameter_names, schedule_fields
from cosmictagger.records.progress import Bar, progress
from cosmictagger.records.summaries import IMAGE_PERIOD
from cosmictagger.records.trace import TRACED, traced
from cosmictagger.training.journal import Journal
from cosmictagger.training.metrics import KEYS
from cosmictagger.training.schedule import Schedule

Result = TypeVar("Result")

_STATISTICS = "statistics"
"""The checkpoint's key for each process's statistics of normalisation."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Periods:
    """Intervals and batch counts, in steps."""

    validation: int
    checkpoint: int
    accumulation: int = 1
    """Batches to load for one update."""

    share: int | None = None
    """This process's events of a batch; None means all."""

    images: bool = False
    """Whether to write images of events."""


@dataclass(kw_only=True)
class Training:
    """The state of a training run: everything that a checkpoint restores.

    Large because the loop is where all parts of a run meet: data, device, schedule, records and the other processes.
    """

    executor: Executor
    loader: BatchLoader
    held_out: BatchLoader | None
    schedule: Schedule
    checkpoints: Checkpoints
    journal: Journal
    periods: Periods
    consistency: ConsistencyCheck
    keys: tuple[str, ...] = KEYS
    """The names of the executor's metrics."""

    trace_folder: Path | None = None
    step: int = 0
    """Updates so far, including those of resumed runs."""

    began: int = 0
    """The first step of this run; after a restart by a launcher, that of the first attempt."""

    samples: int = 0
    """Events seen by all processes, including those of resumed runs."""

    _entries: list[int] = field(default_factory=list)
    """The entries of this process's last batch."""

    @property
    def processes(self) -> Processes:
        """This process and its peers."""
        return self.consistency.processes

    def left(self, iterations: int) -> int:
        """How many of this run's iterations are left."""
        return max(iterations - (self.step - self.began), 0)

    def run(self, iterations: int) -> None:
        """Run the remaining iterations and save the last step."""
        left = self.left(iterations)
        with progress(left, "training", shown=self.processes.writes) as bar:
            for number in range(left):
                self._iterate(number, bar)
        if left and self.step % self.periods.checkpoint:
            self.save()

    def _iterate(self, number: int, bar: Bar) -> None:
        began, watch, compilation = time.time(), _Timer(), 0.0
        if self.held_out is not None and self.step and self.step % self.periods.validation == 0:
            compilation = watch.time("val", self.validate)
        with traced(self.trace_folder or Path(), self.step, wanted=self.trace_folder is not None and number < TRACED):
            batches = watch.time("io", lambda: [next(self.loader) for _ in range(self.periods.accumulation)])
            rate = self.schedule.rate(self.step)
            outcome = watch.time("train", lambda: self._shared(self.executor.train(batches, rate)))
        self._entries = batches[0].entries[: self.periods.share].tolist()
        watch.time("log", lambda: self._note(outcome, batches, rate, watch, bar))
        self.step += 1
        if number == 0 and self.processes.is_distributed:
            self.consistency.check(self.step, self._entries, self.executor.state()["state_dict"])
        if self.step % self.periods.checkpoint == 0:
            watch.time("checkpoint", self.save)
        seconds = watch.total()
        self.journal.profile.add(number, began, {**outcome.seconds, **watch.seconds, "iteration": seconds})
        self.journal.throughput.add(seconds, compilation + outcome.seconds.get("compilation", 0.0))

    def _shared(self, outcome: Outcome) -> Outcome:
        """The mean over all processes."""
        if not self.processes.is_distributed:
            return outcome
        *metrics, loss = self.processes.mean(torch.tensor([*outcome.metrics.tolist(), outcome.loss]).double()).tolist()
        return replace(outcome, metrics=torch.tensor(metrics), loss=loss)

    def _note(self, outcome: Outcome, batches: list[AnyBatch], rate: float, watch: _Timer, bar: Bar) -> None:
        images = sum(len(batch.entries) for batch in batches) * self.processes.size
        self.samples += images
        io, train = watch.seconds["io"], watch.seconds["train"]
        values = self._values(outcome.metrics, outcome.loss) | {
            "learning_rate": rate,
            "global_step_per_sec": 1.0 / (io + train),
            "images_per_second": images / (io + train),
            "io_fetch_time": io,
            "step_time": train,
        }
        self.journal.note("train", self.step, values, io=io, seconds=train)
        if self.periods.images and self.step % IMAGE_PERIOD == 0:
            self._draw("train", batches[0])
        bar.update(1)
        bar.set_postfix_str(f"loss {outcome.loss:.3g}, {values['images_per_second']:.2g} images/s")

    def validate(self) -> float:
        """Evaluate one held-out batch; returns the seconds spent on compiling."""
        assert self.held_out is not None
        batch = next(self.held_out)
        found = self.executor.evaluate(batch)
        shared = self._shared(Outcome(loss=found.loss, metrics=found.metrics))
        self.journal.note("test", self.step, self._values(shared.metrics, shared.loss))
        return found.compilation

    def _values(self, metrics: torch.Tensor, loss: float) -> dict[str, float]:
        return {**dict(zip(self.keys, metrics.tolist(), strict=True)), "loss": loss}

    def _draw(self, kind: str, batch: AnyBatch) -> None:
        prediction = self.executor.evaluate(batch).prediction[0].numpy()
        label = tensors(batch, torch.device("cpu"))[1]
        self.journal.draw(kind, self.step, prediction, label[0].numpy())

    def save(self) -> None:
        """Write a checkpoint, after checking that all processes have equal weights."""
        state = self.state()
        self.consistency.check(self.step, self._entries, state["state_dict"])
        if self.processes.is_distributed and not self.processes.per_instance_files:
            # Weights are equal everywhere, but each process has its own statistics.
            state[_STATISTICS] = self.processes.gather_tensors(self._statistics(state["state_dict"]))
        if self.processes.writes or self.processes.per_instance_files:
            self.checkpoints.save(self.step, state)

    def _statistics(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: tensor for name, tensor in weights.items() if name not in self.consistency.parameters}

    def state(self) -> dict[str, Any]:
        """Everything needed to resume exactly: only tensors and plain values."""
        held_out = {} if self.held_out is None else self.held_out.state()
        return {
            "global_step": self.step,
            "began": self.began,
            **self.executor.state(),
            "scheduler": schedule_fields(self.step, self.schedule.rate(self.step)),
            "data": {"train": self.loader.state(), "held_out": held_out, "samples": self.samples},
            "random": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any], *, everything: bool = True, restarted: bool = False) -> None:
        """Resume; without ``everything`` the data start over, and ``restarted`` runs finish an earlier attempt."""
        weights = self._own_weights(state)
        parameters = dict(self.executor.network.named_parameters())
        optimizer = in_order(state.get("optimizer") or {}, parameter_names(weights), parameters)
        self.executor.restore({**state, "state_dict": weights, "optimizer": optimizer})
        self.step = int(state["global_step"])
        self.began = int(state.get("began", 0)) if restarted else self.step
        if not everything or "data" not in state:
            return
        self.loader.restore(state["data"]["train"])
        if self.held_out is not None and state["data"]["held_out"]:
            self.held_out.restore(state["data"]["held_out"])
        self.samples = int(state["data"]["samples"])
        torch.set_rng_state(state["random"])

    def _own_weights(self, state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The weights of a checkpoint, with this process's statistics if the number of processes is the same."""
        statistics = state.get(_STATISTICS, [])
        own = statistics[self.processes.rank] if len(statistics) == self.processes.size else {}
        return {**state["state_dict"], **own}


class _Timer:
    """Measures the parts of an iteration."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    def time(self, part: str, do: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = do()
        self.seconds[part] = time.perf_counter() - start
        return result

    def total(self) -> float:
        return time.perf_counter() - self._start
