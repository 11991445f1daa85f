"""Memory of the tensors on the card: memory of the computing device, without what its allocator reserves."""

from __future__ import annotations

import ctypes
import os
import warnings

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


def memory_usage(device: Device = None) -> int:
    """Return the bytes that tensors use."""
    return memory_allocated(device)


def memory_reserved(device: Device = None) -> int:
    """Return the bytes of the whole memory: the bridge reserves all of it."""
    return mem_get_info(device)[1]


def max_memory_reserved(device: Device = None) -> int:
    """Return the bytes of the whole memory: the bridge reserves all of it."""
    return mem_get_info(device)[1]


def memory_cached(device: Device = None) -> int:
    """Return memory_reserved(), the newer name."""
    warnings.warn("torch.hpu.memory_cached has been renamed to memory_reserved.", FutureWarning, stacklevel=2)
    return memory_reserved(device)


def max_memory_cached(device: Device = None) -> int:
    """Return max_memory_reserved(), the newer name."""
    warnings.warn("torch.hpu.max_memory_cached has been renamed to max_memory_reserved.", FutureWarning, stacklevel=2)
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Reset the peak."""
    check_device(device)
    library().reset_memory_peak()


def reset_max_memory_allocated(device: Device = None) -> None:
    """Reset the peak: the older name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Reset the counts of allocations and releases; allocations still in use stay counted."""
    check_device(device)
    library().reset_memory_counts()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Return the free and the total memory of the computing device in bytes."""
    check_device(device)
    if computing_device.is_cuda():
        return torch.cuda.mem_get_info(computing_device.card())
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def memory_stats(device: Device = None) -> dict[str, int]:
    """Return the figures under the vendor's names, sizes in bytes.

    Every allocation is one of the computing device, so those of the system are the same.
    """
    _, whole = mem_get_info(device)
    counts = (ctypes.c_int64 * 3)()
    library().memory_counts(counts)
    allocations, releases, largest = (int(each) for each in counts)
    return {
        "Limit": whole,
        "InUse": memory_allocated(),
        "MaxInUse": max_memory_allocated(),
        "NumAllocs": allocations,
        "NumFrees": releases,
        "ActiveAllocs": allocations - releases,
        "MaxAllocSize": largest,
        "TotalSystemAllocs": allocations,
        "TotalSystemFrees": releases,
        "TotalActiveAllocs": allocations - releases,
    }


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """Return the figures as a table; the short form omits those of the computing device."""
    free, whole = mem_get_info(device)
    figures = {"in use": memory_allocated(), "most in use at once": max_memory_allocated()}
    if not abbreviated:
        figures |= {"free on the device": free, "total on the device": whole}
    rows = [f"{name:<20} {size:>20,}" for name, size in figures.items()]
    title = "PyTorch HPU memory summary, device ID 0"
    return "\n".join([title, f"Gaudi, emulated on {computing_device.name()}, in bytes", *rows])


def utilization(device: Device = None) -> int:
    """Raise ModuleNotFoundError: the card's load is read by pyhlml, which needs the card."""
    check_device(device)
    raise ModuleNotFoundError(
        "The load of the card is read by pyhlml, which needs the card. Use `pilotage monitor` or hl-smi.",
        name="pyhlml",
    )


def empty_cache() -> None:
    """Release unused memory that the computing device's allocator keeps; the CPU keeps none."""
    if computing_device.is_cuda():
        torch.cuda.empty_cache()
