"""The training loop: validate, train, write down, save, again."""

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
from cosmictagger.records.progress import Bar, progress
from cosmictagger.records.summaries import IMAGE_PERIOD
from cosmictagger.records.trace import TRACED, traced
from cosmictagger.training.journal import Journal
from cosmictagger.training.metrics import KEYS
from cosmictagger.training.schedule import Schedule

Result = TypeVar("Result")

_STATISTICS = "statistics"
"""Under this name a checkpoint of several processes holds what each of them has beside the weights."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Periods:
    """How often things are done, in steps."""

    validation: int
    checkpoint: int
    accumulation: int = 1
    """Batches that the loader is asked for before one update."""

    share: int | None = None
    """Events of one batch that are this process's; None where that is all of them."""

    images: int | None = None
    """None draws none."""


@dataclass(kw_only=True)
class Training:
    """A training under way: everything that a checkpoint has to bring back is reachable from here."""

    executor: Executor
    loader: BatchLoader
    held_out: BatchLoader | None
    schedule: Schedule
    checkpoints: Checkpoints
    journal: Journal
    periods: Periods
    consistency: ConsistencyCheck
    keys: tuple[str, ...] = KEYS
    """The names of the numbers that the executor returns."""

    trace_folder: Path | None = None
    step: int = 0
    """Updates done, in this run and those that it resumed."""

    began: int = 0
    """The step that this run began with; one that a launcher has restarted began where the first attempt did."""

    samples: int = 0
    """Events seen by all processes, likewise."""

    _entries: list[int] = field(default_factory=list)
    """What this process was given last."""

    @property
    def processes(self) -> Processes:
        """This process and its peers."""
        return self.consistency.processes

    def left(self, iterations: int) -> int:
        """How many of so many steps, counted from where the run began, are still to be done."""
        return max(iterations - (self.step - self.began), 0)

    def run(self, iterations: int) -> None:
        """Do so many steps from where the run began, and save the last one."""
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
        """The mean of what all processes found."""
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
        """Compare one batch of held-out events with its labels; returns the seconds that compiling for it took."""
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
        """Write a checkpoint of everything, once the weights of all processes were found equal."""
        state = self.state()
        self.consistency.check(self.step, self._entries, state["state_dict"])
        if self.processes.is_distributed and not self.processes.per_instance_files:
            # Weights are equal everywhere, statistics of normalisation are each process's own.
            state[_STATISTICS] = self.processes.gather_tensors(self._statistics(state["state_dict"]))
        if self.processes.writes or self.processes.per_instance_files:
            self.checkpoints.save(self.step, state)

    def _statistics(self, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: tensor for name, tensor in weights.items() if name not in self.consistency.parameters}

    def state(self) -> dict[str, Any]:
        """What it takes to go on as if nothing had happened; tensors and plain values alone."""
        held_out = {} if self.held_out is None else self.held_out.state()
        return {
            "global_step": self.step,
            "began": self.began,
            **self.executor.state(),
            "scheduler": {"last_epoch": self.step, "peak": float(self.schedule.peak)},
            "data": {"train": self.loader.state(), "held_out": held_out, "samples": self.samples},
            "random": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any], *, everything: bool = True, restarted: bool = False) -> None:
        """Go on from a checkpoint; without ``everything``, the data begin anew. ``restarted`` runs make up for an attempt."""
        self.executor.restore({**state, "state_dict": self._own_weights(state)})
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
        """The weights of a checkpoint, with the statistics that this process had in a run of as many processes."""
        everybodys = state.get(_STATISTICS, [])
        own = everybodys[self.processes.rank] if len(everybodys) == self.processes.size else {}
        return {**state["state_dict"], **own}


class _Timer:
    """Times the parts of an iteration."""

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
