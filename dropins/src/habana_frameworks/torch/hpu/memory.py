"""How much memory the tensors on the card take. It is that of the device underneath, whose own reserve is not counted."""

from __future__ import annotations

import os

import torch

from habana_frameworks._emulation import underneath
from habana_frameworks._emulation.library import library
from habana_frameworks.torch.hpu.places import Device, check_device


def memory_allocated(device: Device = None) -> int:
    """Return the bytes that tensors take now."""
    check_device(device)
    return int(library().memory_allocated())


def max_memory_allocated(device: Device = None) -> int:
    """Return the most bytes that tensors have taken at once."""
    check_device(device)
    return int(library().memory_peak())


def memory_reserved(device: Device = None) -> int:
    """Return the bytes that are held for tensors: those that they take."""
    return memory_allocated(device)


def max_memory_reserved(device: Device = None) -> int:
    """Return the most bytes that were held for tensors."""
    return max_memory_allocated(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Forget the peak so far."""
    check_device(device)
    library().reset_memory_peak()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Return the free and the whole memory in bytes: those of the device underneath."""
    check_device(device)
    if underneath.is_cuda():
        return torch.cuda.mem_get_info(underneath.card())
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def memory_stats(device: Device = None) -> dict[str, int]:
    """Return the figures under the vendor's names: Limit, InUse and MaxInUse in bytes."""
    _, whole = mem_get_info(device)
    return {"Limit": whole, "InUse": memory_allocated(), "MaxInUse": max_memory_allocated()}


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """Return the figures as a table to be read; abbreviated it leaves out what the device underneath has."""
    free, whole = mem_get_info(device)
    figures = {"in use": memory_allocated(), "most in use at once": max_memory_allocated()}
    if not abbreviated:
        figures |= {"free underneath": free, "whole underneath": whole}
    rows = [f"{name:<20} {size:>20,}" for name, size in figures.items()]
    return "\n".join([f"Memory of Gaudi, emulated on {underneath.name()}, in bytes", *rows])


def empty_cache() -> None:
    """Give back the memory that no tensor takes and the device underneath keeps; the CPU keeps none."""
    if underneath.is_cuda():
        torch.cuda.empty_cache()
