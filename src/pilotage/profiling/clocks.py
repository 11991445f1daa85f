"""Clocks for single operations: the host's, and the card's own."""

from __future__ import annotations

import time
from functools import cache
from typing import Protocol

import torch

from pilotage.torch_private import sleep_on_card

__all__ = ["Clock", "clock_for", "synchronize"]

_AT_ONCE = 128
"""Operations that are sent to a card while it sleeps, so that it never waits for the host between them."""

_SLEEP_CYCLES = 12_000_000
"""Some milliseconds: longer than the host needs to send that many operations."""


class Clock(Protocol):
    """Times operations that run one after the other."""

    def start(self) -> None:
        """An operation begins."""
        ...

    def stop(self) -> None:
        """The operation was called; a card may still be working on it."""
        ...

    def seconds(self) -> list[float]:
        """The times of all operations since the last call of this method."""
        ...


class HostClock:
    """A clock for devices that have finished an operation when its call returns."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._begun = 0.0

    def start(self) -> None:
        """An operation begins."""
        self._begun = time.perf_counter()

    def stop(self) -> None:
        """It has ended."""
        self._times.append(time.perf_counter() - self._begun)

    def seconds(self) -> list[float]:
        """The times of all operations since the last call of this method."""
        times, self._times = self._times, []
        return times


class CardClock:
    """A clock for cards with their own queue: events of the card before and after each operation."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pairs: list[tuple[torch.Event, torch.Event]] = []
        self._waiting = 0

    def start(self) -> None:
        """An operation begins; from time to time the card is made to sleep, so that the host gets ahead of it."""
        if self._waiting == 0:
            synchronize(self._device)
            if torch.cuda.is_available():
                sleep_on_card(_SLEEP_CYCLES)
        self._waiting = (self._waiting + 1) % _AT_ONCE
        pair = (timing_event(self._device), timing_event(self._device))
        pair[0].record()
        self._pairs.append(pair)

    def stop(self) -> None:
        """The operation is in the card's queue."""
        self._pairs[-1][1].record()

    def seconds(self) -> list[float]:
        """The times of all operations since the last call of this method."""
        synchronize(self._device)
        pairs, self._pairs, self._waiting = self._pairs, [], 0
        return [max(0.0, first.elapsed_time(second)) / 1000 for first, second in pairs]


def timing_event(device: torch.device) -> torch.Event:
    """An event that records its time."""
    return torch.Event(device, enable_timing=True)


def clock_for(device: torch.device) -> Clock:
    """The clock of a device."""
    return CardClock(device) if has_queue(device) else HostClock()


@cache
def has_queue(device: torch.device) -> bool:
    """Whether a device may still be working when a call has returned; an emulated card is not."""
    if device.type == "cpu" or not torch.accelerator.is_available():
        return False
    present = torch.accelerator.current_accelerator()
    if present is None or present.type != device.type:
        return False
    try:
        timing_event(device)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def synchronize(device: torch.device) -> None:
    """Wait until a device has completed its work."""
    if has_queue(device):
        torch.accelerator.synchronize(device)
