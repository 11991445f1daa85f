"""The replacement of each name of ``torch.cuda``."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import torch

from habana_frameworks.torch import hpu

MATCHING = (
    "Event",
    "Stream",
    "current_stream",
    "default_stream",
    "device_count",
    "current_device",
    "empty_cache",
    "get_device_name",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
)
"""Names that also exist in ``torch.hpu``."""


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Name and memory of the card, with compute capability 0.0; other attributes of a GPU raise AttributeError."""
    known = hpu.get_device_properties(device)
    return SimpleNamespace(name=known.name, total_memory=known.total_memory, major=0, minor=0)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return compute capability 0.0, so that no script assumes features of a GPU."""
    del device
    return 0, 0


def is_current_stream_capturing() -> bool:
    """Return False: graphs of the card are not captured by stream."""
    return False


class autocast(torch.autocast):
    """Mixed precision on the card, by default in bfloat16."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("hpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def scaler(*args: Any, **kwargs: Any) -> torch.amp.GradScaler:
    """Loss scaling on the card."""
    return torch.amp.GradScaler("hpu", *args, **kwargs)


def mark_nothing(*args: Any, **kwargs: Any) -> int:
    """Do nothing: the card has no NVTX, and a profile is valid without marks."""
    return 0


def refusing(name: str) -> Any:
    """Make a function that raises, because the card has no counterpart."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch.cuda.{name} has no counterpart on Gaudi, and scripts rely on its result. Remove the call."
        )

    return refuse


MODIFIED: dict[str, tuple[Callable[..., Any], str]] = {
    "CUDAGraph": (hpu.HPUGraph, "torch.hpu.HPUGraph"),
    "graph": (hpu.graph, "torch.hpu.graph"),
    "device": (hpu.device, "torch.hpu.device"),
    "get_device_properties": (get_device_properties, "torch.hpu.get_device_properties"),
    "get_device_capability": (get_device_capability, "(0, 0)"),
    "is_current_stream_capturing": (is_current_stream_capturing, "no"),
    "reset_max_memory_allocated": (hpu.reset_peak_memory_stats, "torch.hpu.reset_peak_memory_stats"),
}
"""Names with another meaning on the card, and their replacements."""

MISMATCHING = ("get_arch_list", "get_gencode_flags", "ipc_collect", "utilization", "cudart")
"""Names without a counterpart."""
