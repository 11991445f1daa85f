"""Kernels compiled by threads while a program is still being captured: its shapes are known before it runs."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import torch

THREADS = 4
"""Most of a kernel's compilation is done outside of Python, and the capture beside it is not."""


class Workshop:
    """Compiles kernels of Triton beside whatever ordered them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="kernels")
        self._ordered: set[Hashable] = set()
        self._underway: list[Future[None]] = []

    def order(self, device: torch.device, kernel: Any, *arguments: Any, **tile: Any) -> None:
        """Have a kernel compiled, once, for arguments like these: a type stands for a tensor."""
        name = (device, kernel, arguments, *tile.values())
        if name not in self._ordered:
            self._ordered.add(name)
            self._underway.append(self._threads.submit(_compile, device, kernel, arguments, tile))

    def finish(self) -> None:
        """Wait for all that was ordered. A kernel that could not be compiled says so when it is called."""
        if self._underway:
            wait(self._underway)
            self._underway.clear()


@cache
def workshop() -> Workshop:
    """The one workshop of this process."""
    return Workshop()


def _compile(device: torch.device, kernel: Any, arguments: tuple[Any, ...], tile: dict[str, Any]) -> None:
    with torch.accelerator.device_index(device.index):
        kernel.warmup(*arguments, **tile, grid=(1,))
