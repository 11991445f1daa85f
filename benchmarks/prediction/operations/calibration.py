"""Collects measurements of single operations, and says on which machine."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from benchmarks.prediction.timing import seconds_of, workspace_of

HALF, SINGLE = torch.bfloat16, torch.float32

Row = dict[str, Any]
Shape = TypeVar("Shape")


def _size_of(shape: Any) -> float:
    return float(shape) if isinstance(shape, int) else math.prod(max(1.0, float(each)) for each in shape)


class Calibration:
    """Collects measurements within a time limit for each group."""

    def __init__(self, device: str, path: Path | None, scale: float) -> None:
        self.device = device
        self.scale = scale
        self.rows: list[Row] = []
        self._path = path
        self._group, self._until = "", 0.0
        self._start = time.perf_counter()

    @contextmanager
    def group(self, name: str, seconds: float) -> Iterator[None]:
        """Measure a group of operations; measurements after its time limit are left out."""
        self._group, self._until = name, time.perf_counter() + seconds * self.scale
        before = len(self.rows)
        try:
            yield
        except Exception as error:  # one group that fails must not end the others
            print(f"{name} failed: {error!r}", flush=True)
        finally:
            taken = time.perf_counter() - self._start
            print(f"{name}: {len(self.rows) - before} measurements, {taken:.0f} s since the start", flush=True)
            self.write()

    def note(self, operation: Callable[[], Any], *, memory: bool = False, repeats: int = 20, **facts: Any) -> None:
        """Measure one operation."""
        if time.perf_counter() > self._until:
            return
        row: Row = {"group": self._group, **facts}
        try:
            row["seconds"] = seconds_of(operation, self.device, repeats)
            if memory:
                row["allocated"] = workspace_of(operation, self.device)
        except Exception as error:  # one operation that fails must not end the others
            row["error"] = str(error)[:200]
        self.rows.append(row)

    def some(self, shapes: Sequence[Shape]) -> Sequence[Shape]:
        """All shapes, or the smallest one to try the script."""
        return shapes if self.scale == 1.0 else [min(shapes, key=_size_of)]

    def make(self, *shape: int, dtype: torch.dtype = SINGLE) -> Tensor:
        """A random tensor."""
        return torch.randn(shape, device=self.device, dtype=torch.float32).to(dtype)

    def write(self) -> None:
        """Write all measurements so far."""
        if self._path is not None:
            self._path.write_text(json.dumps({"machine": machine_of(self.device), "rows": self.rows}, indent=0))


def machine_of(device: str) -> Row:
    """What was measured."""
    if device != "cuda":
        return {"device": device, "name": platform.processor() or platform.machine(), "torch": torch.__version__}
    facts = torch.cuda.get_device_properties(0)
    return {
        "device": device,
        "name": facts.name,
        "memory": facts.total_memory,
        "processors": facts.multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "context": facts.total_memory - torch.cuda.mem_get_info()[0],
        "triton": _has_triton(),
    }


def _has_triton() -> bool:
    import importlib.util

    return importlib.util.find_spec("triton") is not None
