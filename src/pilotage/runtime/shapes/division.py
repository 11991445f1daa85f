"""How a call of another size is divided into micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pilotage.errors import BatchDimensionError
from pilotage.options.batching import Batching
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import call_paths
from pilotage.runtime.call import BoundCall


def divided(call: BoundCall, first: Sequence[TensorSpec], batching: Batching, names: list[str]) -> Batching:
    """The loops of a call: its micro-batches have as many rows as those of the first call, if that is possible.

    A call with fewer of them has fewer device iterations, the rest of an accumulation is one update with fewer
    micro-batches, and fewer rows than a micro-batch has are one smaller micro-batch. Any other number of rows makes
    micro-batches of another size.
    """
    parts = batching.micro_batches_per_call
    if parts == 1:
        return batching
    sizes = [tensor.shape[0] if tensor.dim() else 1 for tensor in call.inputs]
    usual = [spec.shape[0] if spec.shape else 1 for spec in first]
    count, rounds = _micro_batches(sizes, usual), parts // batching.device_iterations
    if count is not None and count % rounds == 0:
        return replace(batching, device_iterations=count // rounds)
    if count is not None and count < rounds and batching.replicas == 1:
        return replace(batching, device_iterations=1, gradient_accumulation=count)
    is_smaller = len(sizes) == len(usual) and all(size < other for size, other in zip(sizes, usual, strict=True))
    if is_smaller and batching.replicas == 1:
        return replace(batching, device_iterations=1, gradient_accumulation=1)
    if all(size % parts == 0 for size in sizes):
        return batching
    path = next(iter(call_paths(call.arguments, names)), "of the call")
    raise BatchDimensionError(
        f"The input {path} has {sizes[0]} rows. A call takes {parts} micro-batches of equal size: device iterations x "
        f"gradient accumulation x replicas. If they have {usual[0]} rows each as in the first call, it also takes "
        f"fewer of them, in multiples of {rounds}"
        + (", or less than that as one update" if batching.replicas == 1 else "")
        + ". pilotage.batches(loader, step) divides an epoch that way."
    )


def _micro_batches(sizes: Sequence[int], usual: Sequence[int]) -> int | None:
    """How many micro-batches of the usual number of rows the inputs contain; None if they do not divide evenly."""
    if len(sizes) != len(usual) or any(size % other for size, other in zip(sizes, usual, strict=True)):
        return None
    counts = {size // other for size, other in zip(sizes, usual, strict=True)}
    return counts.pop() if len(counts) == 1 else None
