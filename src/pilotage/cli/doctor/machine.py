"""The devices of the machine, read from the kernel's files without any vendor's software."""

from __future__ import annotations

from pathlib import Path

from pilotage.cli.doctor.finding import Finding, Verdict
from pilotage.monitoring.kernel_files import field_of, text_of
from pilotage.monitoring.pci import CardCounts, count_cards
from pilotage.monitoring.plurals import pluralized
from pilotage.monitoring.processor import memory_of, processor_name, usable_cores

__all__ = ["CardCounts", "accelerator", "count_cards", "memory", "processor"]

VECTOR_UNITS = {"amx_tile": "AMX", "avx512f": "AVX-512", "avx2": "AVX2", "sve": "SVE", "asimd": "NEON"}
GIBIBYTE = 2**30


def processor(root: Path = Path("/")) -> Finding:
    """Describe the processor, and the cores that this process may use."""
    description = text_of(root / "proc/cpuinfo")
    name, cores, vectors = processor_name(description), usable_cores(root), _vector_units(description)
    value = ", ".join(part for part in (name, pluralized(cores, "core"), vectors) if part)
    return Finding(name="CPU", value=value, facts={"name": name, "cores": cores, "vector_units": vectors})


def memory(root: Path = Path("/")) -> Finding:
    """Describe the memory that this process may use."""
    total, free = memory_of(root)
    value = f"{total / GIBIBYTE:.1f} GiB, {free / GIBIBYTE:.1f} GiB free" if total else "unknown"
    return Finding(name="memory", value=value, facts={"total": total, "free": free})


def accelerator(name: str, count: int) -> Finding:
    """Describe cards of one kind by their number."""
    if not count:
        return Finding(name=name, value="none", verdict=Verdict.ABSENT, facts={"count": 0})
    return Finding(name=name, value=pluralized(count, "card"), facts={"count": count})


def _vector_units(description: str) -> str:
    flags = set((field_of(description, "flags") or field_of(description, "Features")).split())
    return next((unit for flag, unit in VECTOR_UNITS.items() if flag in flags), "")
