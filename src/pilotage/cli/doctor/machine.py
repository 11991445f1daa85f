"""Devices that the machine has, read from the kernel's files and therefore known without any vendor's software."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from pilotage.cli.doctor.finding import Finding, Verdict

__all__ = ["Cards", "accelerator", "count_cards", "memory", "processor"]

NVIDIA, HABANA, GRAPHCORE = "0x10de", "0x1da3", "0x1d95"
DISPLAY_CLASSES = ("0x0300", "0x0302")
VECTOR_UNITS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
GIBIBYTE = 2**30


@dataclass(frozen=True, slots=True)
class Cards:
    """How many accelerators of each maker the machine holds."""

    nvidia: int
    gaudi: int
    ipu: int


def count_cards(root: Path = Path("/")) -> Cards:
    """Count the accelerators on the PCI bus; where the bus is hidden, the NVIDIA driver's device files count."""
    devices = [(_text(entry / "vendor"), _text(entry / "class")) for entry in root.glob("sys/bus/pci/devices/*")]
    nvidia = sum(vendor == NVIDIA and kind.startswith(DISPLAY_CLASSES) for vendor, kind in devices)
    return Cards(
        nvidia=nvidia or len(list(root.glob("dev/nvidia[0-9]*"))),
        gaudi=sum(vendor == HABANA for vendor, _ in devices),
        ipu=sum(vendor == GRAPHCORE for vendor, _ in devices),
    )


def processor(root: Path = Path("/")) -> Finding:
    """Describe the processor and the cores of it that this process may use."""
    description = _text(root / "proc/cpuinfo")
    name, cores, vectors = _processor_name(description), _usable_cores(root), _vector_units(description)
    value = ", ".join(part for part in (name, f"{cores} core{'s' if cores != 1 else ''}", vectors) if part)
    return Finding(name="CPU", value=value, facts={"name": name, "cores": cores, "vector_units": vectors})


def memory(root: Path = Path("/")) -> Finding:
    """Describe the memory that this process may use."""
    description = _text(root / "proc/meminfo")
    sizes = [int(_field(description, key).removesuffix("kB") or 0) * 1024 for key in ("MemTotal", "MemAvailable")]
    limit = _text(root / "sys/fs/cgroup/memory.max")
    total, free = (min(size, int(limit)) if limit.isdigit() else size for size in sizes)
    value = f"{total / GIBIBYTE:.1f} GiB, {free / GIBIBYTE:.1f} GiB free" if total else "unknown"
    return Finding(name="memory", value=value, facts={"total": total, "free": free})


def accelerator(name: str, count: int) -> Finding:
    """Describe cards of one kind by their number alone."""
    if not count:
        return Finding(name=name, value="none", verdict=Verdict.ABSENT, facts={"count": 0})
    return Finding(name=name, value=f"{count} card{'s' if count != 1 else ''}", facts={"count": count})


def _processor_name(description: str) -> str:
    return _field(description, "model name") or platform.processor() or platform.machine()


def _vector_units(description: str) -> str:
    flags = set((_field(description, "flags") or _field(description, "Features")).split())
    return next((unit for flag, unit in VECTOR_UNITS.items() if flag in flags), "")


def _usable_cores(root: Path) -> int:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _text(root / "sys/fs/cgroup/cpu.max").partition(" ")
    return max(1, min(allowed, int(quota) // int(period))) if quota.isdigit() else allowed


def _field(description: str, key: str) -> str:
    for line in description.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
