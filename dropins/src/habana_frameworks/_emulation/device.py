"""Registers the device with torch, once per process."""

from __future__ import annotations

import multiprocessing
import os
from functools import cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from habana_frameworks._emulation import computing_device, lazy
from habana_frameworks._emulation.events import EventId, publish
from habana_frameworks._emulation.inductor import refuse_inductor
from habana_frameworks._emulation.library import library
from pilotage.engine import Warned, log_event, process_lists_on, register_device_module, wait_at_exit

_ANNOUNCEMENT = "No Gaudi found: the device hpu is emulated on {place} ({mode} mode)."
_AUTOCAST_LISTS = ("PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST", "PT_HPU_AUTOCAST_FP32_OPS_LIST")
_ANNOUNCED = "PILOTAGE_HPU_ANNOUNCED"
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


@cache
def activate(module: ModuleType) -> None:
    """Register the device ``hpu`` with its module ``torch.hpu``, and log that it is emulated."""
    is_late = library().came_late()
    register_device_module("hpu", module)
    # The vendor's package adds these three names to torch's classes.
    Tensor.hpu = _tensor_to_card  # type: ignore[attr-defined]
    Tensor.is_hpu = property(_is_on_card)  # type: ignore[attr-defined]
    nn.Module.hpu = _module_to_card  # type: ignore[attr-defined]
    if is_late:
        _check_backward()
    # Backward runs in a thread of the device, which may still free tensors when the program ends.
    wait_at_exit()
    lazy.start()
    refuse_inductor()
    if computing_device.is_cuda():
        process_lists_on("hpu")
    _check_autocast_lists()
    publish(EventId.DEVICE_ACQUIRED)
    _announce()


def _check_autocast_lists() -> None:
    """Log that the default list is used where the library could not read a file."""
    for name in _AUTOCAST_LISTS:
        path = os.environ.get(name)
        if path and not os.access(path, os.R_OK):
            log_event(Warned(message=f"{name} names {path}, which cannot be read. Autocast uses its default list."))


def _announce() -> None:
    """Log once per job that the device is emulated: in its first process, and in none that this one starts."""
    is_first = all(os.environ.get(name, "0") == "0" for name in _RANKS)
    if is_first and _ANNOUNCED not in os.environ and multiprocessing.parent_process() is None:
        log_event(Warned(message=_ANNOUNCEMENT.format(place=computing_device.name(), mode=lazy.mode())))
    os.environ[_ANNOUNCED] = "1"


def _check_backward() -> None:
    """Raise ImportError if torch has already counted its devices for backward() without this one."""
    try:
        torch.ones(1, device="hpu", requires_grad=True).sum().backward()
    except RuntimeError as error:
        raise ImportError(
            "backward() ran in this process before the device hpu was registered, and torch counts its devices only "
            "once. Import habana_frameworks.torch.core before any training, or use another process."
        ) from error


def _is_on_card(tensor: Tensor) -> bool:
    return tensor.device.type == "hpu"


def _tensor_to_card(tensor: Tensor, device: Any = None, non_blocking: bool = False, **layout: Any) -> Tensor:
    """Return a copy of the tensor on the card."""
    return tensor.to(_card(device), non_blocking=non_blocking, **layout)


def _module_to_card(module: nn.Module, device: Any = None) -> nn.Module:
    """Move all parameters and buffers to the card."""
    return module.to(_card(device))


def _card(device: Any) -> torch.device:
    if device is None or isinstance(device, int):
        return torch.device("hpu", device or 0)
    return torch.device(device)
