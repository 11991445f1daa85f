"""The module ``torch.hpu`` of the emulated device: one card, for which another device computes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType

import torch

from habana_frameworks._emulation import computing_device
from habana_frameworks._emulation.device import activate
from habana_frameworks.torch.hpu.cached_modules import ModuleCacher as ModuleCacher
from habana_frameworks.torch.hpu.cached_modules import make_graphed_callables as make_graphed_callables
from habana_frameworks.torch.hpu.cached_modules import wrap_in_hpu_graph as wrap_in_hpu_graph
from habana_frameworks.torch.hpu.device_argument import Device as Device
from habana_frameworks.torch.hpu.device_argument import check_device as check_device
from habana_frameworks.torch.hpu.graphs import HPUGraph as HPUGraph
from habana_frameworks.torch.hpu.graphs import graph as graph
from habana_frameworks.torch.hpu.memory import empty_cache as empty_cache
from habana_frameworks.torch.hpu.memory import max_memory_allocated as max_memory_allocated
from habana_frameworks.torch.hpu.memory import max_memory_reserved as max_memory_reserved
from habana_frameworks.torch.hpu.memory import mem_get_info as mem_get_info
from habana_frameworks.torch.hpu.memory import memory_allocated as memory_allocated
from habana_frameworks.torch.hpu.memory import memory_reserved as memory_reserved
from habana_frameworks.torch.hpu.memory import memory_stats as memory_stats
from habana_frameworks.torch.hpu.memory import memory_summary as memory_summary
from habana_frameworks.torch.hpu.memory import reset_peak_memory_stats as reset_peak_memory_stats
from habana_frameworks.torch.hpu.random import get_rng_state as get_rng_state
from habana_frameworks.torch.hpu.random import get_rng_state_all as get_rng_state_all
from habana_frameworks.torch.hpu.random import initial_seed as initial_seed
from habana_frameworks.torch.hpu.random import manual_seed as manual_seed
from habana_frameworks.torch.hpu.random import manual_seed_all as manual_seed_all
from habana_frameworks.torch.hpu.random import seed as seed
from habana_frameworks.torch.hpu.random import seed_all as seed_all
from habana_frameworks.torch.hpu.random import set_rng_state as set_rng_state
from habana_frameworks.torch.hpu.random import set_rng_state_all as set_rng_state_all
from habana_frameworks.torch.hpu.streams import Event as Event
from habana_frameworks.torch.hpu.streams import Stream as Stream
from habana_frameworks.torch.hpu.streams import current_stream as current_stream
from habana_frameworks.torch.hpu.streams import default_stream as default_stream
from habana_frameworks.torch.hpu.streams import stream as stream


def is_available() -> bool:
    """Whether the device can be used; the emulated one always can."""
    return True


def device_count() -> int:
    """Return the number of cards of this process."""
    return 1


def current_device() -> int:
    """Return the index of the current card."""
    return 0


def set_device(device: Device) -> None:
    """Set the current card; there is only one, so this only checks the index."""
    check_device(device)


def get_device_name(device: Device = None) -> str:
    """Return the name of the card, which says that it is emulated."""
    check_device(device)
    return f"Gaudi, emulated on {computing_device.name()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceProperties:
    """Name of the card, and memory of the computing device in bytes."""

    name: str
    total_memory: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Return name and memory of the card; other attributes raise AttributeError."""
    return DeviceProperties(name=get_device_name(device), total_memory=mem_get_info(device)[1])


def synchronize(device: Device = None) -> None:
    """Wait for all work on the card; on the CPU it is already done."""
    check_device(device)
    computing_device.synchronize()


def init() -> None:
    """Initialise the device; the import has already done it."""


def is_initialized() -> bool:
    """Whether the device is initialised."""
    return True


def is_bf16_supported() -> bool:
    """Whether bfloat16 is supported."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the types that autocast supports."""
    return [torch.bfloat16, torch.float16]


class device:
    """Set the current card within a block; there is only one, so this only checks the index."""

    def __init__(self, device: Device) -> None:
        check_device(device)

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def __getattr__(name: str) -> object:
    # Created late: CUDA's generators exist only after its initialisation.
    if name == "default_generators":
        return (computing_device.generator(),)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _lazy_init() -> None:
    """Torch calls this before it uses a device."""


def _is_in_bad_fork() -> bool:
    return False


activate(sys.modules[__name__])
