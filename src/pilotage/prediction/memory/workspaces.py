"""Temporary memory inside of one operation on a card."""

from __future__ import annotations

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.trace.work import Convolution, Work, WorkKind

__all__ = ["workspace_of"]


def workspace_of(work: Work, model: DeviceModel) -> int:
    """The bytes that an operation needs besides its operands and results."""
    if model.kind != "card" or work.kind is not WorkKind.CONVOLUTION:
        return work.workspace
    # One pass after the other, each with its own.
    return max((_of_pass(part, work.type) for part in work.parts if isinstance(part, Convolution)), default=0)


def _of_pass(part: Convolution, kind: str) -> int:
    """Operands in the layout that the kernels want: they multiply channels that lie beside each other."""
    return 0 if part.channels_last or part.is_plain or part.groups > 1 or part.channels_in < 2 else part.moved
