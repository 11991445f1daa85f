"""The processor of this machine, from the kernel's files."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from pilotage.monitoring.counting import counted
from pilotage.monitoring.device import Device
from pilotage.monitoring.kernel_files import field_of, fields_of, number_of, text_of

_SECONDS_OF_LOOKING = 0.1
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_KIBIBYTE = 1024


class Processor:
    """Looks at the processor; its load is that since the last look, or over a moment at the first one."""

    def __init__(self, root: Path = Path("/"), moment: float = _SECONDS_OF_LOOKING) -> None:
        self._root = root
        self._moment = moment
        self._last: tuple[int, int] | None = None

    def look(self) -> Device:
        """The processor as it is now."""
        description = text_of(self._root / "proc/cpuinfo")
        total, available = memory_of(self._root)
        clocks = [clock for text in fields_of(description, "cpu MHz") if (clock := number_of(text)) is not None]
        return Device(
            id="cpu",
            maker="CPU",
            name=f"{processor_name(description)}, {counted(usable_cores(self._root), 'core')}",
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
            time.sleep(self._moment)
        before, now = self._last, self._ticks()
        if before is None or now is None or now[1] <= before[1]:
            return None
        self._last = now
        return min(1.0, max(0.0, (now[0] - before[0]) / (now[1] - before[1])))

    def _ticks(self) -> tuple[int, int] | None:
        """Ticks of work, and all of them."""
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
    """What the processor is called, from the kernel's description of it."""
    return field_of(description, "model name") or platform.processor() or platform.machine()


def usable_cores(root: Path = Path("/")) -> int:
    """The cores that this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = text_of(root / "sys/fs/cgroup/cpu.max").partition(" ")
    return max(1, min(allowed, int(quota) // int(period))) if quota.isdigit() else allowed


def memory_of(root: Path = Path("/")) -> tuple[int, int]:
    """The memory that this process may use and what is free of it, in bytes; 0 where the kernel does not say."""
    description = text_of(root / "proc/meminfo")
    keys = ("MemTotal", "MemAvailable")
    sizes = [int(field_of(description, key).removesuffix("kB") or 0) * _KIBIBYTE for key in keys]
    limit = text_of(root / "sys/fs/cgroup/memory.max")
    total, free = (min(size, int(limit)) if limit.isdigit() else size for size in sizes)
    return total, free
