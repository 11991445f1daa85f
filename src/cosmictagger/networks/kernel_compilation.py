"""Compiling Triton kernels in threads while a program is captured: its shapes are known before it runs."""

from __future__ import annotations

from collections.abc import Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import torch

THREADS = 4
"""Kernels compile mostly outside of Python, so threads do not slow the capture down."""


class KernelCompiler:
    """Compiles Triton kernels in the background."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="kernels")
        self._submitted: set[Hashable] = set()
        self._pending: list[Future[None]] = []

    def submit(self, device: torch.device, kernel: Any, *arguments: Any, **tile: Any) -> None:
        """Compile a kernel once for arguments like these; a dtype stands for a tensor."""
        name = (device, kernel, arguments, *tile.values())
        if name not in self._submitted:
            self._submitted.add(name)
            self._pending.append(self._threads.submit(_compile, device, kernel, arguments, tile))

    def wait(self) -> None:
        """Wait for all submitted kernels. A kernel that failed to compile raises when it is called."""
        if self._pending:
            wait(self._pending)
            self._pending.clear()


@cache
def kernel_compiler() -> KernelCompiler:
    """The compiler of this process."""
    return KernelCompiler()


def _compile(device: torch.device, kernel: Any, arguments: tuple[Any, ...], tile: dict[str, Any]) -> None:
    with torch.accelerator.device_index(device.index):
        kernel.warmup(*arguments, **tile, grid=(1,))
