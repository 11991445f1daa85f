"""Temporary memory inside of one operation on a card."""

from __future__ import annotations

from pilotage.prediction.devices.model import DeviceModel
from pilotage.prediction.trace.work import Convolution, Work, WorkKind

__all__ = ["workspace_of"]


def workspace_of(work: Work, model: DeviceModel) -> int:
    """The bytes that an operation needs besides its operands and results."""
    if model.kind != "card" or work.kind is not WorkKind.CONVOLUTION:
        return work.workspace
    # The passes run one after the other, each with its own workspace.
    return max((_of_pass(part) for part in work.parts if isinstance(part, Convolution)), default=0)


def _of_pass(part: Convolution) -> int:
    """Operands in the layout that the kernels want, with contiguous channels, and partial sums."""
    if part.groups > 1 or part.channels_in < 2:
        return 0
    partial = min(_MOST_PARTIAL_SUMS, _PARTIAL_SUMS * part.weight_bytes) if part.way == "weight" else 0
    if part.channels_last or (part.is_plain and part.aligned):
        return partial
    return part.moved + (partial or part.weight_bytes)


_PARTIAL_SUMS, _MOST_PARTIAL_SUMS = 14, 8_500_000
"""How many parts the gradient of a weight is summed in, and their most bytes: measured with single convolutions."""
