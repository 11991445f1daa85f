"""Chrome traces of single steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

TRACED = 5
"""How many of a run's first steps are traced: each file is large."""


@contextmanager
def traced(folder: Path, step: int, *, wanted: bool) -> Iterator[None]:
    """Write ``timeline_<step>.json`` for what happens meanwhile."""
    if not wanted:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    # Torch 2.11 warns that events of earlier cycles are lost, also where there is one cycle, unless they are kept.
    with torch.profiler.profile(acc_events=True) as profile:
        yield
    profile.export_chrome_trace(str(folder / f"timeline_{step}.json"))
