"""The learning rate as a function of the step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from cosmictagger.configuration.choices import RunUnit, ScheduleKind
from cosmictagger.configuration.mode import LrSchedule, Optimizer
from cosmictagger.configuration.run import Run
from cosmictagger.errors import ConfigurationError

START = 1e-4
"""The rate at the start of the warm-up and the end of the decay."""

FLAT_UNTIL = 21.0
"""The epoch in which the decay starts."""

DECAY = 0.999

STANDARD_START = 1e-6
"""Where version 2.1's warm-up starts."""

STEP_DECAY = 0.01
"""Version 2.1 decays by this exponent at each step."""

EPOCHS = {RunUnit.epoch: 20, RunUnit.iteration: 25}
"""Version 2.1's length of a schedule, if the run's length does not set it."""


class Schedule(Protocol):
    """A learning rate for each step."""

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class WarmUp:
    """One epoch of linear warm-up, twenty flat ones, then exponential decay: version 2.0's schedule."""

    peak: float
    minibatch_size: int
    """Events of a batch: accumulated batches do not count, as in the original."""

    events: int
    """Events per epoch."""

    def epoch(self, step: int) -> float:
        """Epochs completed before a step."""
        return step * self.minibatch_size / self.events

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        epoch = self.epoch(step)
        if epoch < 1.0:
            return START + (self.peak - START) * epoch
        if epoch < FLAT_UNTIL:
            return self.peak
        return (self.peak - START) * math.exp(-DECAY * (epoch - FLAT_UNTIL)) + START


@dataclass(frozen=True, kw_only=True, slots=True)
class Newer:
    """A schedule of version 2.1: a rise, a middle and a decay, then 0."""

    settings: LrSchedule
    epoch: int
    """Steps of an epoch."""

    epochs: int

    @property
    def end(self) -> int:
        """The first step whose rate is 0."""
        return self.epoch * self.epochs

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step >= self.end:
            return 0.0
        match self.settings.name:
            case ScheduleKind.standard:
                return self._standard(step)
            case ScheduleKind.one_cycle:
                return self._one_cycle(step)
            case ScheduleKind.flat:
                return self.settings.peak_learning_rate
            case other:
                raise ValueError(f"{other.name} is not a schedule of version 2.1")

    def _standard(self, step: int) -> float:
        peak = self.settings.peak_learning_rate
        if step < self.epoch:
            return STANDARD_START + step * (peak - STANDARD_START) / self.epoch
        return self._decayed(peak, step) if step >= self._decay else peak

    def _one_cycle(self, step: int) -> float:
        low, peak = self.settings.min_learning_rate, self.settings.peak_learning_rate
        up = int(0.5 * (self.epochs - self.settings.decay_epochs) * self.epoch)
        if step < up:
            return low + step * (peak - low) / up
        if step < self._decay:
            return peak + (step - up) * (low - peak) / (self._decay - up)
        return self._decayed(low, step)

    @property
    def _decay(self) -> int:
        """The first step of the decay."""
        return (self.epochs - self.settings.decay_epochs) * self.epoch

    def _decayed(self, above: float, step: int) -> float:
        floor = self.settings.decay_floor
        return floor + (above - floor) * math.exp(-STEP_DECAY * (step - self._decay))


def steps_of_epoch(run: Run, events: int) -> int:
    """Steps of an epoch, of which the last has to be full."""
    return max(events // run.minibatch_size, 1)


def run_steps(run: Run, events: int) -> int | None:
    """The length of the whole run in steps, if ``run.run_length`` sets it."""
    if not run.run_length:
        return None
    return run.run_length * (steps_of_epoch(run, events) if run.run_units is RunUnit.epoch else 1)


def schedule_for(optimizer: Optimizer, run: Run, events: int, largest: int | None = None) -> Schedule:
    """The configured schedule; ``largest`` counts the events of the largest file, an epoch of version 2.1."""
    settings = optimizer.lr_schedule
    if settings.name is ScheduleKind.warmup:
        return WarmUp(peak=optimizer.learning_rate, minibatch_size=run.minibatch_size, events=events)
    count = largest or events
    if run.run_units is RunUnit.iteration:
        # Version 2.1 then takes an event for a step.
        return _checked(Newer(settings=settings, epoch=count, epochs=EPOCHS[RunUnit.iteration]))
    epochs = run.run_length or EPOCHS[RunUnit.epoch]
    return _checked(Newer(settings=settings, epoch=steps_of_epoch(run, count), epochs=epochs))


def early_end(schedule: Schedule, step: int, steps: int) -> str | None:
    """A warning if the schedule ends before some steps from here do: at rate 0 they change no weight."""
    if not isinstance(schedule, Newer) or max(step, schedule.end) >= step + steps:
        return None
    return (
        f"The schedule {schedule.settings.name.name} ends after {schedule.end} steps ({schedule.epochs} epochs of "
        f"{schedule.epoch}), as in version 2.1: the learning rate of steps {max(step, schedule.end)} to "
        f"{step + steps - 1} is 0. Use run.run_length, in epochs, for the length of the run."
    )


def _checked(schedule: Newer) -> Newer:
    settings = schedule.settings
    rises = settings.name is ScheduleKind.standard
    if settings.name is not ScheduleKind.flat and settings.decay_epochs + rises > schedule.epochs:
        raise ConfigurationError(
            f"mode.optimizer.lr_schedule.decay_epochs={settings.decay_epochs} does not fit into a schedule of "
            f"{schedule.epochs} epochs. Use a smaller number, or a longer run.run_length."
        )
    return schedule
