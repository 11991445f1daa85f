"""When a comparison with eager PyTorch would take too long or too much memory."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pilotage.execution.memory import free_memory, wait_for

MAX_SECONDS = 30.0
"""A reference run that would take longer is skipped, unless the user asks for it."""

_BACKWARD = 2.0
"""How long backward takes, in forwards."""

_SHARE_OF_MEMORY = 0.8


class TooExpensive(Exception):
    """The reference run is skipped; says why."""


@dataclass(kw_only=True)
class CheckLimits:
    """What a reference run may cost."""

    device: torch.device
    state_bytes: int
    """What copies of the weights and of the optimizer's state take."""

    _saved: dict[int, int] = field(default_factory=dict, init=False)
    """The bytes of each tensor that backward needs, by its address."""

    _total: int = field(default=0, init=False)
    _free: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._free = free_memory(self.device)
        if self.state_bytes > self._free * _SHARE_OF_MEMORY:
            raise TooExpensive(f"copies of the weights need {_size(self.state_bytes)}, but {_size(self._free)} is free")

    def check_time(self, device: torch.device, begun: float, remaining: int, *, trains: bool) -> None:
        """Raise if the whole run would take too long, judged by the forward pass that has just ended."""
        wait_for(device)
        seconds = (time.perf_counter() - begun) * remaining * (1 + _BACKWARD if trains else 1)
        self._saved.clear()
        self._total = 0
        if seconds > MAX_SECONDS:
            raise TooExpensive(f"eager PyTorch would take about {seconds:.0f} s")

    def of_saved_tensors(self) -> AbstractContextManager[None]:
        """Raise in the block when what backward needs would not fit."""
        return torch.autograd.graph.saved_tensors_hooks(self._note, _as_it_was)

    def _note(self, tensor: Tensor) -> tuple[Tensor, int]:
        size = tensor.numel() * tensor.element_size()
        self._total += size - self._saved.get(tensor.data_ptr(), 0)
        self._saved[tensor.data_ptr()] = size
        if self._total + self.state_bytes > self._free * _SHARE_OF_MEMORY:
            raise TooExpensive(f"the activations of eager PyTorch need more than the {_size(self._free)} that are free")
        return tensor, tensor._version


def _as_it_was(saved: tuple[Tensor, int]) -> Tensor:
    """A saved tensor; raises if it was overwritten, which autograd does not check with saved-tensor hooks."""
    tensor, version = saved
    if tensor._version != version:
        raise RuntimeError("A variable needed for gradient computation has been modified by an inplace operation.")
    return tensor


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
