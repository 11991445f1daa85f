"""Training with the faster of two executors, found out in the first steps."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from cosmictagger.data.events import AnyBatch
from cosmictagger.devices.executor import Evaluation, Executor, Outcome, Placement
from cosmictagger.networks.uresnet import UResNet

WARM_UP, TIMED = 1, 4
"""Steps of each executor before the decision: the first one is slower."""


class MeasuredExecutor:
    """Runs some steps in the plain loop, some as a program, and the rest in the way that took less time.

    Both compute the same: each takes over the weights and the optimizer's state of the other.
    """

    def __init__(self, plain: Callable[[], Executor], program: Callable[[], Executor]) -> None:
        self._ways = {"eager": plain, "pilotage": program}
        self._current, self._name = plain(), "eager"
        self._seconds: dict[str, list[float]] = {name: [] for name in self._ways}
        self._updates, self._compilation = 0, 0.0
        self._reason = "the run was too short to compare"

    @property
    def network(self) -> UResNet:
        """The network of the executor in use."""
        return self._current.network

    def train(self, batches: Sequence[AnyBatch], rate: float) -> Outcome:
        """Sum the gradients of the batches and update the weights once."""
        start = time.perf_counter()
        outcome = self._current.train(batches, rate)
        took = time.perf_counter() - start - outcome.seconds.get("compilation", 0.0)
        seconds = self._seconds[self._name]
        if len(seconds) < WARM_UP + TIMED:
            seconds.append(took)
            if len(seconds) == WARM_UP + TIMED:
                self._advance()
        return outcome

    def _advance(self) -> None:
        if not self._seconds["pilotage"]:
            self._switch("pilotage")
            return
        plain, program = (statistics.median(self._seconds[name][WARM_UP:]) for name in ("eager", "pilotage"))
        self._reason = f"a step took {program:.3f} s as a program of Pilotage and {plain:.3f} s in the plain loop"
        if plain < program:
            self._switch("eager")

    def _switch(self, name: str) -> None:
        before = self._current.placement()
        self._updates += before.updates
        self._compilation += before.compilation_seconds
        state = self._current.state()
        # The run's random numbers stay those of one executor.
        with torch.random.fork_rng(devices=[]):
            executor = self._ways[name]()
        executor.restore(state)
        self._current, self._name = executor, name

    def evaluate(self, batch: AnyBatch) -> Evaluation:
        """Predict and compare with the labels."""
        return self._current.evaluate(batch)

    def state(self) -> dict[str, Any]:
        """The weights and the state of the optimizer."""
        return self._current.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self._current.restore(state)

    def placement(self) -> Placement:
        """Where and how the work was actually done, and why."""
        found = self._current.placement()
        return replace(
            found,
            updates=found.updates + self._updates,
            compilation_seconds=found.compilation_seconds + self._compilation,
            reason=self._reason,
        )
