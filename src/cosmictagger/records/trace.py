"""Chrome traces of single steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

TRACED = 5
"""How many of the first steps are traced; each file is large."""


@contextmanager
def traced(folder: Path, step: int, *, wanted: bool) -> Iterator[None]:
    """Write ``timeline_<step>.json`` for the code inside."""
    if not wanted:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    # Without acc_events, torch 2.11 warns that events of earlier cycles are lost, even if there is only one cycle.
    with torch.profiler.profile(acc_events=True) as profile:
        yield
    profile.export_chrome_trace(str(folder / f"timeline_{step}.json"))
