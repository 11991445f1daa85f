"""A trace by torch's own profiler, laid out as TensorBoard's plugin reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import profile, supported_activities, tensorboard_trace_handler

__all__ = ["traced_into"]


@contextmanager
def traced_into(folder: Path) -> Iterator[None]:
    """Trace the block into a file ``*.pt.trace.json`` of a folder."""
    with profile(
        activities=supported_activities(),
        record_shapes=True,
        profile_memory=True,
        on_trace_ready=tensorboard_trace_handler(str(folder)),
        acc_events=True,
    ):
        yield
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()
