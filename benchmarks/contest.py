"""Contenders that take turns, and how they compare."""

from __future__ import annotations

import statistics
import sys
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
    _send_compilers_home()
    for number in range(rounds):
        order = contenders if number % 2 == 0 else contenders[::-1]
        for contender in order:
            contender.run()


def repeated(call: Callable[[], object], calls: int, device: str, *, steps: int = 1) -> Callable[[], int]:
    """A round of so many calls, each of which makes so many steps."""

    def run() -> int:
        for _ in range(calls):
            call()
        synchronized(device)
        return calls * steps

    return run


def synchronized(device: str) -> None:
    """Wait for the device, so that a clock measures its work and not its queue."""
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def _send_compilers_home() -> None:
    """End the processes that torch.compile keeps for its next compilation; starting up, they take cores from everybody."""
    if "torch._inductor.async_compile" in sys.modules:
        sys.modules["torch._inductor.async_compile"].shutdown_compile_workers()
