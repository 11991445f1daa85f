"""Overlapping transfers between host and device with computation.

Here the engine decides when to transfer, so these only check what PopTorch checks.
"""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

from pilotage.engine import flatten, unflatten
from poptorch._args_parser import registered_parsers
from poptorch._capture.capturing import Capture, current_capture
from poptorch._errors import require
from poptorch.enums import OutputMode, OverlapMode
from poptorch.options import ShardedExecution
from poptorch.poptorch_core import Error

Nested = TypeVar("Nested")


def set_overlap_for_input(input_tensors: Nested, mode: OverlapMode) -> Nested:
    """The inputs themselves, to be transferred while the device computes; the only operation applied to them."""
    capture = _checked("set_overlap_for_input", mode)
    if capture is None:
        return input_tensors
    tensors, structure = flatten(input_tensors, registered_parsers())
    overlapped: Nested = unflatten(structure, [_overlapped(capture, tensor) for tensor in tensors])
    return overlapped


def set_overlap_for_output(output_tensors: Nested, mode: OverlapMode) -> Nested:
    """The outputs themselves, to be transferred while the device computes."""
    capture = _checked("set_overlap_for_output", mode)
    if capture is None:
        return output_tensors
    if capture.options.output_mode not in (OutputMode.All, OutputMode.Sum):
        present = OutputMode(capture.options.output_mode).name
        raise Error(
            "poptorch.set_overlap_for_output needs poptorch.Options().outputMode to be OutputMode.All or "
            f"OutputMode.Sum. It is OutputMode.{present}."
        )
    assert capture.run is not None
    for tensor in flatten(output_tensors, registered_parsers())[0]:
        capture.run.overlap_output(tensor)
    return output_tensors


def _overlapped(capture: Capture, tensor: Tensor) -> Tensor:
    assert capture.run is not None
    with capture.run.overlapping(tensor):
        return tensor.view_as(tensor)


def _checked(operation: str, mode: OverlapMode) -> Capture | None:
    """The compilation in which to check the overlap, if any."""
    require(isinstance(mode, OverlapMode), f"poptorch.{operation} takes a poptorch.OverlapMode, not {mode!r}.")
    capture = current_capture()
    if capture is None or capture.run is None or mode is OverlapMode.NoOverlap:
        return None
    if not isinstance(capture.options._execution_strategy, ShardedExecution):
        raise Error(
            f"poptorch.{operation} needs poptorch.ShardedExecution. The execution strategy is "
            f"{type(capture.options._execution_strategy).__name__}."
        )
    if not capture.options.TensorLocations.exists("numIOTiles"):
        raise Error(f"No IO tiles allocated: poptorch.{operation} needs poptorch.Options().TensorLocations.numIOTiles.")
    return capture
