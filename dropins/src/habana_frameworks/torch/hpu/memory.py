"""Memory of the tensors on the card: memory of the computing device, without what its allocator reserves."""

from __future__ import annotations

import os

import torch

from habana_frameworks._emulation import computing_device
from habana_frameworks._emulation.library import library
from habana_frameworks.torch.hpu.device_argument import Device, check_device


def memory_allocated(device: Device = None) -> int:
    """Return the bytes that tensors use."""
    check_device(device)
    return int(library().memory_allocated())


def max_memory_allocated(device: Device = None) -> int:
    """Return the peak of the bytes that tensors use."""
    check_device(device)
    return int(library().memory_peak())


def memory_reserved(device: Device = None) -> int:
    """Return the bytes reserved for tensors, which are those that they use."""
    return memory_allocated(device)


def max_memory_reserved(device: Device = None) -> int:
    """Return the peak of the bytes reserved for tensors."""
    return max_memory_allocated(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Reset the peak."""
    check_device(device)
    library().reset_memory_peak()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Return the free and the total memory of the computing device in bytes."""
    check_device(device)
    if computing_device.is_cuda():
        return torch.cuda.mem_get_info(computing_device.card())
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def memory_stats(device: Device = None) -> dict[str, int]:
    """Return the figures under the vendor's names: Limit, InUse and MaxInUse in bytes."""
    _, whole = mem_get_info(device)
    return {"Limit": whole, "InUse": memory_allocated(), "MaxInUse": max_memory_allocated()}


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """Return the figures as a table; the short form omits those of the computing device."""
    free, whole = mem_get_info(device)
    figures = {"in use": memory_allocated(), "most in use at once": max_memory_allocated()}
    if not abbreviated:
        figures |= {"free on the device": free, "total on the device": whole}
    rows = [f"{name:<20} {size:>20,}" for name, size in figures.items()]
    return "\n".join([f"Memory of Gaudi, emulated on {computing_device.name()}, in bytes", *rows])


def empty_cache() -> None:
    """Release unused memory that the computing device's allocator keeps; the CPU keeps none."""
    if computing_device.is_cuda():
        torch.cuda.empty_cache()
