"""Rules about the learning rate: fields that the chosen schedule does not use are refused, not ignored."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cosmictagger.configuration.choices import ScheduleKind
from cosmictagger.configuration.mode import LrSchedule, Optimizer, Train
from cosmictagger.configuration.root import Configuration

USED = {
    ScheduleKind.warmup: (),
    ScheduleKind.flat: ("peak_learning_rate",),
    ScheduleKind.standard: ("peak_learning_rate", "decay_floor", "decay_epochs"),
    ScheduleKind.one_cycle: ("peak_learning_rate", "decay_floor", "decay_epochs", "min_learning_rate"),
}
"""The fields of each schedule."""

FIELDS = ("peak_learning_rate", "decay_floor", "decay_epochs", "min_learning_rate")


def schedule_problems(config: Configuration) -> Iterator[str]:
    """Refuse fields of another schedule, and rates that are not positive."""
    if not isinstance(config.mode, Train):
        return
    optimizer, schedule = config.mode.optimizer, config.mode.optimizer.lr_schedule
    if schedule.name is not ScheduleKind.warmup and optimizer.learning_rate != Optimizer().learning_rate:
        yield (
            f"mode.optimizer.learning_rate={optimizer.learning_rate} is the peak of the schedule warmup, but "
            f"mode.optimizer.lr_schedule.name is {schedule.name.name}. Use "
            "mode.optimizer.lr_schedule.peak_learning_rate."
        )
    for field in FIELDS:
        value = getattr(schedule, field)
        if field not in USED[schedule.name] and value != getattr(LrSchedule(), field):
            users = [kind.name for kind, fields in USED.items() if field in fields]
            yield (
                f"mode.optimizer.lr_schedule.{field}={value} has no meaning for the schedule {schedule.name.name}. "
                f"Leave it out, or use mode.optimizer.lr_schedule.name={' or '.join(users)}."
            )
        if not 0 <= value < math.inf or (value == 0 and field == "peak_learning_rate"):
            yield f"mode.optimizer.lr_schedule.{field} is {value}. It must be positive and finite."
