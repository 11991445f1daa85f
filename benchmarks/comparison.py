"""Contenders that alternate within one run, so that disturbances affect all of them equally."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch


@dataclass
class Contender:
    """One way of doing the work: a function that does one round and returns its number of steps."""

    name: str
    round: Callable[[], int]
    rates: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    """The most memory of its process so far, on its device; 0 if it shares a process."""

    seconds_until_ready: float = 0.0
    """How long its own process took from its start to the end of the first round."""

    profile: Callable[[str], int] | None = None
    """Does a round and adds the times of its kernels to the named file; None if it shares a process."""

    def run(self) -> None:
        """Do one round and record its rate."""
        start = time.perf_counter()
        steps = self.round()
        self.rates.append(steps / (time.perf_counter() - start))

    @property
    def median(self) -> float:
        """Steps per second in the median round."""
        return statistics.median(self.rates)


def alternate(contenders: list[Contender], rounds: int) -> None:
    """Warm up all contenders, then run their rounds alternately, in both orders."""
    for contender in contenders:
        contender.round()
    _stop_compile_workers()
    for number in range(rounds):
        order = contenders if number % 2 == 0 else contenders[::-1]
        for contender in order:
            contender.run()


def repeated(call: Callable[[], object], calls: int, device: str, *, steps: int = 1) -> Callable[[], int]:
    """A round of ``calls`` calls with ``steps`` steps each."""

    def run() -> int:
        for _ in range(calls):
            call()
        synchronized(device)
        return calls * steps

    return run


def synchronized(device: str) -> None:
    """Wait for the device, so that its work is measured and not only the launch."""
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def _stop_compile_workers() -> None:
    """Stop the idle worker processes of torch.compile, which use cores while they start."""
    if "torch._inductor.async_compile" in sys.modules:
        sys.modules["torch._inductor.async_compile"].shutdown_compile_workers()
