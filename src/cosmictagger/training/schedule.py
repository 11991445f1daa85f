"""The learning rate as a function of the step."""

from __future__ import annotations

import math
from dataclasses import dataclass

START = 1e-4
"""Where the warm-up begins and the decay ends."""

FLAT_UNTIL = 21.0
"""The epoch that the decay begins with."""

DECAY = 0.999


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """One epoch of linear warm-up, twenty flat ones, then exponential decay."""

    peak: float
    minibatch_size: int
    events: int
    """How many events are an epoch."""

    def epoch(self, step: int) -> float:
        """How often the data was seen before a step."""
        return step * self.minibatch_size / self.events

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        epoch = self.epoch(step)
        if epoch < 1.0:
            return START + (self.peak - START) * epoch
        if epoch < FLAT_UNTIL:
            return self.peak
        return (self.peak - START) * math.exp(-DECAY * (epoch - FLAT_UNTIL)) + START
