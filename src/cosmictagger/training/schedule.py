"""The learning rate as a function of the step."""

from __future__ import annotations

import math
from dataclasses import dataclass

START = 1e-4
"""The rate at the start of the warm-up and the end of the decay."""

FLAT_UNTIL = 21.0
"""The epoch in which the decay starts."""

DECAY = 0.999


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """One epoch of linear warm-up, twenty flat ones, then exponential decay."""

    peak: float
    minibatch_size: int
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
