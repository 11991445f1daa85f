"""Contenders that take turns, and how they compare."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch


@dataclass
class Contender:
    """One way of doing the work: a function that does a round of it and returns how many steps that was."""

    name: str
    round: Callable[[], int]
    rates: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Do one round and note its rate."""
        start = time.perf_counter()
        steps = self.round()
        self.rates.append(steps / (time.perf_counter() - start))

    @property
    def median(self) -> float:
        """Steps per second in the median round."""
        return statistics.median(self.rates)


def take_turns(contenders: list[Contender], rounds: int) -> None:
    """Warm everyone up, then let them work in turn, so that a disturbance hits all of them alike."""
    for contender in contenders:
        contender.round()
    for number in range(rounds):
        order = contenders if number % 2 == 0 else contenders[::-1]
        for contender in order:
            contender.run()


def synchronized(device: str) -> None:
    """Wait for the device, so that a clock measures its work and not its queue."""
    if device != "cpu":
        torch.get_device_module(device).synchronize()
