"""torch.profiler with the activity HPU, whose work is that of the computing device."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import torch

from habana_frameworks._emulation import computing_device

_Profile = torch.profiler.profile
_Activity = torch.profiler.ProfilerActivity


class DebugActivity(Enum):
    """Activities of the vendor's own layers, which do not exist here."""

    SYNAPSE_FUNCTION_CALLS = 1
    BRIDGE_FUNCTION_CALLS = 2


class profile(_Profile):
    """torch.profiler.profile: the activity HPU records the computing device.

    ``debug_activities`` asks for calls of the vendor's own layers, which do not exist here.
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None, debug_activities: Iterable[Any] | None = None, **options: Any
    ) -> None:
        del debug_activities
        super().__init__(activities=None if activities is None else _recorded(activities), **options)


def _recorded(activities: Iterable[Any]) -> list[Any]:
    """The activities of torch for those of the card."""
    beneath = _Activity.CUDA if computing_device.is_cuda() else _Activity.CPU
    asked = [beneath if getattr(each, "name", "") == "HPU" else each for each in activities]
    return [_Activity.CPU, *(each for each in asked if each is not _Activity.CPU)]


torch.profiler.profile = profile  # type: ignore[misc]
