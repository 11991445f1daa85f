"""The module ``torch.hpu`` of the emulated device: one card, whose work another device does."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import TracebackType

import torch

from habana_frameworks._emulation import underneath
from habana_frameworks._emulation.device import activate
from habana_frameworks.torch.hpu.cached_modules import ModuleCacher as ModuleCacher
from habana_frameworks.torch.hpu.cached_modules import make_graphed_callables as make_graphed_callables
from habana_frameworks.torch.hpu.cached_modules import wrap_in_hpu_graph as wrap_in_hpu_graph
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
from habana_frameworks.torch.hpu.places import Device as Device
from habana_frameworks.torch.hpu.places import check_device as check_device
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
    """Say whether the device can be used: the emulated one always can."""
    return True


def device_count() -> int:
    """Return the number of cards that this process sees."""
    return 1


def current_device() -> int:
    """Return the number of the card in use."""
    return 0


def set_device(device: Device) -> None:
    """Choose a card; there is one, so this checks the number."""
    check_device(device)


def get_device_name(device: Device = None) -> str:
    """Return what the card calls itself, which here is no card's name."""
    check_device(device)
    return f"Gaudi, emulated on {underneath.name()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceProperties:
    """What is known of the card: its name, and the memory of the device underneath in bytes."""

    name: str
    total_memory: int


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Return name and memory of the card; asking for what else a card has raises."""
    return DeviceProperties(name=get_device_name(device), total_memory=mem_get_info(device)[1])


def synchronize(device: Device = None) -> None:
    """Wait until the card has done its work, which the processor has."""
    check_device(device)
    underneath.synchronize()


def init() -> None:
    """Start the device, which importing it has done."""


def is_initialized() -> bool:
    """Say whether the device has been started."""
    return True


def is_bf16_supported() -> bool:
    """Say whether bfloat16 can be computed with."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the types that autocast can be asked for."""
    return [torch.bfloat16, torch.float16]


class device:
    """Choose a card for a while; there is one, so this checks the number."""

    def __init__(self, device: Device) -> None:
        check_device(device)

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def __getattr__(name: str) -> object:
    # Asked for late: where CUDA computes, its generators are there once it is awake.
    if name == "default_generators":
        return (underneath.generator(),)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _lazy_init() -> None:
    """Torch calls this before it uses a device."""


def _is_in_bad_fork() -> bool:
    return False


activate(sys.modules[__name__])
