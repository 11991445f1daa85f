"""The processor of this machine, read from the kernel's files."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from pilotage.monitoring.device import Device
from pilotage.monitoring.kernel_files import field_of, fields_of, number_of, text_of
from pilotage.monitoring.plurals import pluralized

_FIRST_INTERVAL = 0.1
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_KIBIBYTE = 1024


class Processor:
    """Reads the processor; its load is that since the last reading, or over a tenth of a second at the first one."""

    def __init__(self, root: Path = Path("/"), interval: float = _FIRST_INTERVAL) -> None:
        self._root = root
        self._interval = interval
        self._last: tuple[int, int] | None = None

    def read(self) -> Device:
        """The current state of the processor."""
        description = text_of(self._root / "proc/cpuinfo")
        total, available = memory_of(self._root)
        clocks = [clock for text in fields_of(description, "cpu MHz") if (clock := number_of(text)) is not None]
        return Device(
            id="cpu",
            maker="CPU",
            name=f"{processor_name(description)}, {pluralized(usable_cores(self._root), 'core')}",
            driver=None,
            memory_used=total - available if total else None,
            memory_total=total or None,
            utilisation=self._load(),
            temperature=self._temperature(),
            clock=sum(clocks) / len(clocks) if clocks else None,
        )

    def _load(self) -> float | None:
        if self._last is None:
            self._last = self._ticks()
            time.sleep(self._interval)
        before, now = self._last, self._ticks()
        if before is None or now is None or now[1] <= before[1]:
            return None
        self._last = now
        return min(1.0, max(0.0, (now[0] - before[0]) / (now[1] - before[1])))

    def _ticks(self) -> tuple[int, int] | None:
        """Busy ticks, and all ticks."""
        words = text_of(self._root / "proc/stat").partition("\n")[0].split()[1:9]
        if len(words) < 5 or not all(word.isdigit() for word in words):
            return None
        user, nice, system, idle, waiting, *others = map(int, words)
        work = user + nice + system + sum(others)
        return work, work + idle + waiting

    def _temperature(self) -> float | None:
        for sensor in sorted(self._root.glob("sys/class/hwmon/hwmon*")):
            if text_of(sensor / "name") in _SENSORS:
                degrees = [number_of(text_of(path)) for path in sorted(sensor.glob("temp*_input"))]
                if known := [value / 1000 for value in degrees if value is not None]:
                    return max(known)
        return None


def processor_name(description: str) -> str:
    """The name of the processor, from the text of /proc/cpuinfo."""
    return field_of(description, "model name") or platform.processor() or platform.machine()


def usable_cores(root: Path = Path("/")) -> int:
    """The cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = text_of(root / "sys/fs/cgroup/cpu.max").partition(" ")
    return max(1, min(allowed, int(quota) // int(period))) if quota.isdigit() else allowed


def memory_of(root: Path = Path("/")) -> tuple[int, int]:
    """The memory that this process may use, and how much of it is free, in bytes; 0 if unknown."""
    description = text_of(root / "proc/meminfo")
    keys = ("MemTotal", "MemAvailable")
    sizes = [int(field_of(description, key).removesuffix("kB") or 0) * _KIBIBYTE for key in keys]
    limit = text_of(root / "sys/fs/cgroup/memory.max")
    total, free = (min(size, int(limit)) if limit.isdigit() else size for size in sizes)
    return total, free
