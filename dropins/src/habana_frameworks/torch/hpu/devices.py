"""The card as a device: one per process, for which another device computes."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import torch
from torch.utils.checkpoint import DefaultDeviceType

from habana_frameworks._emulation import computing_device
from habana_frameworks.torch.hpu.device_argument import Device, check_device, index_of
from habana_frameworks.torch.hpu.memory import mem_get_info

HABANA_VISIBLE_MODULES_VAR = "HABANA_VISIBLE_MODULES"
HLS_MODULE_ID_VAR = "HLS_MODULE_ID"
_LAUNCHED = (HABANA_VISIBLE_MODULES_VAR, HLS_MODULE_ID_VAR, "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_VERSION = "1.24.0-emulated"


def is_available() -> bool:
    """Whether the device can be used; the emulated one always can."""
    return True


def device_count() -> int:
    """Return the number of cards of this process."""
    return 1


def current_device() -> int:
    """Return the index of the current card."""
    init()
    return 0


def set_device(device: Device) -> None:
    """Choose the card of this process: 0, or the number that a launcher gave to the process.

    Each process has one card, number 0, whichever module of the machine it is.
    """
    number = index_of(device)
    if number in (None, 0, -1):
        return
    if not any(name in os.environ for name in _LAUNCHED):
        raise AssertionError(
            f"There is one emulated Gaudi card, number 0, but {device!r} was given. Other numbers are for processes "
            "that a launcher has started (torchrun, mpirun)."
        )
    os.environ.setdefault(HLS_MODULE_ID_VAR, str(number))


def get_device_name(device: Device = None) -> str:
    """Return the name of the card, which says that it is emulated."""
    check_device(device)
    return f"Gaudi, emulated on {computing_device.name()}"


class DeviceProperties(str):
    """The properties as text, as in the vendor's bridge, with two of them as attributes."""

    name: str
    total_memory: int

    def __new__(cls, name: str, total_memory: int) -> DeviceProperties:
        """Write the properties as the vendor's bridge does."""
        figures = {
            "sramBaseAddress": 0,
            "dramBaseAddress": 0,
            "sramSize": 0,
            "dramSize": total_memory,
            "tpcEnabledMask": 0,
            "dramEnabled": 1,
            "fd": -1,
            "device_id": 0,
            "device_type": name,
        }
        made = super().__new__(cls, f"({', '.join(f'{each}={value}' for each, value in figures.items())})")
        made.name, made.total_memory = name, total_memory
        return made


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Return the properties as text; name and memory of the computing device are attributes of it."""
    return DeviceProperties(get_device_name(device), mem_get_info(device)[1])


def get_device_capability(device: Device = None) -> str:
    """Return the version of the driver: a text that says that none is installed."""
    check_device(device)
    return _VERSION


def get_arch_list() -> list[str]:
    """Return the name of the card."""
    return [get_device_name()]


def get_gencode_flags() -> str:
    """Return an empty text: only CUDA's compiler has such flags."""
    return ""


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Raise an error: there is one card."""
    if index_of(device) == index_of(peer_device):
        raise AssertionError(f"A card is not its own peer: {device!r} was given twice.")
    check_device(device)
    check_device(peer_device)
    return False


def synchronize(device: Device = None) -> None:
    """Wait for all work on the card; on the CPU it is already done."""
    check_device(device)
    computing_device.synchronize()


_is_initialized = False


def init() -> None:
    """Make the card the default device of activation checkpointing; the rest is done by the import."""
    global _is_initialized
    if not _is_initialized:
        _is_initialized = True
        DefaultDeviceType.set_device_type("hpu")


def is_initialized() -> bool:
    """Whether init() has run, which the first use of the card does."""
    return _is_initialized


def is_bf16_supported() -> bool:
    """Whether bfloat16 is supported."""
    return True


class device:
    """Set the current card within a block; there is only one, so this only checks the index."""

    def __init__(self, device: Device) -> None:
        number = index_of(device)
        known = (None, -1, 0, int(os.environ.get(HLS_MODULE_ID_VAR) or 0))
        if number not in known:
            raise AssertionError(f"There is one emulated Gaudi card, number 0, but {device!r} was given.")

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class device_of(device):
    """Set the current card to that of a tensor within a block; other objects change nothing."""

    def __init__(self, obj: Any) -> None:
        is_on_card = isinstance(obj, torch.Tensor) and obj.device.type == "hpu"
        super().__init__(obj.device if is_on_card else None)
