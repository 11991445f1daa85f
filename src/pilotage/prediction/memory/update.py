"""One update as a sequence of operations, with the lifetime of every tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pilotage.options.batching import Batching
from pilotage.prediction.trace.operations import Category, StepTrace, TracedOperation, TracedTensor
from pilotage.program.program import Action

__all__ = ["UpdateTrace", "update_trace"]

ALWAYS = 1 << 60
"""The end of a lifetime that does not end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateTrace:
    """The operations of one update, those of each micro-batch once, and all tensors."""

    operations: tuple[TracedOperation, ...]
    times: tuple[int, ...]
    """How often each operation runs in one update of one replica."""

    tensors: tuple[TracedTensor, ...]


def update_trace(steps: Mapping[Action, StepTrace], batching: Batching, results: int) -> UpdateTrace:
    """Put the steps of an update one after the other; ``results`` is how many outputs a call keeps."""
    operations: list[TracedOperation] = []
    times: list[int] = []
    stored: dict[str, TracedTensor] = {}
    tensors: list[TracedTensor] = []
    for action, step in steps.items():
        shift, end = len(operations), len(operations) + len(step.operations)
        repeats = 1 if action is Action.UPDATE else batching.gradient_accumulation
        operations += step.operations
        times += [repeats] * len(step.operations)
        for tensor in step.tensors:
            if tensor.is_stored:
                stored[f"{tensor.category.value} {tensor.name}"] = replace(tensor, first=-1, last=ALWAYS)
            elif tensor.category is Category.INPUTS:
                # All micro-batches of a call lie on the device.
                whole = tensor.bytes * batching.micro_batches_per_call
                stored[tensor.name] = replace(tensor, bytes=whole, last=ALWAYS)
            else:
                tensors.append(_shifted(tensor, shift, end, results))
    return UpdateTrace(operations=tuple(operations), times=tuple(times), tensors=(*stored.values(), *tensors))


def _shifted(tensor: TracedTensor, shift: int, end: int, results: int) -> TracedTensor:
    first, held = tensor.first + shift, tensor.held + shift if tensor.held >= 0 else -1
    if tensor.last >= ALWAYS:
        # An output: a call keeps those that it returns.
        return replace(tensor, bytes=tensor.bytes * max(1, results), first=first, last=ALWAYS, held=held)
    return replace(tensor, first=first, last=min(tensor.last, end - shift - 1) + shift, held=held)
