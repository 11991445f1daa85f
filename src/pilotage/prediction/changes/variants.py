"""Changed programs: the same module with other options, types or marks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.options.locations import Locations
from pilotage.prediction.subject import Subject
from pilotage.program.graphs.forward_marks import keep_for_backward
from pilotage.program.specification import TensorSpec
from pilotage.program.structure import flatten

__all__ = ["in_type", "repeated_blocks", "with_accumulation", "with_kept_blocks", "with_optimizer_on_host"]


def with_accumulation(subject: Subject, micro_batches: int) -> Subject:
    """The same with another number of micro-batches for each update."""
    execution = subject.execution
    batching = replace(execution.batching, gradient_accumulation=micro_batches)
    return replace(subject, execution=replace(execution, batching=batching))


def with_optimizer_on_host(subject: Subject) -> Subject:
    """The same with the optimizer's state outside of the device, except during updates."""
    execution = subject.execution
    locations = Locations(activations=execution.locations.activations, optimizer=1)
    return replace(subject, execution=replace(execution, locations=locations))


@contextmanager
def in_type(subject: Subject, dtype: torch.dtype) -> Iterator[Subject]:
    """While active, the module's float32 tensors have another type; yields the subject with such inputs."""
    changed: list[tuple[dict[str, Any], str, Any]] = []
    made: dict[int, Tensor] = {}
    try:
        for part in subject.module.modules():
            for table in (part._parameters, part._buffers):
                for name, tensor in table.items():
                    if tensor is not None and tensor.dtype == torch.float32:
                        changed.append((table, name, tensor))
                        table[name] = made.setdefault(id(tensor), _converted(tensor, dtype))  # type: ignore[assignment]
        inputs = tuple(
            TensorSpec(each.shape, each.stride, dtype) if each.dtype == torch.float32 else each
            for each in subject.micro_batch
        )
        yield replace(subject, micro_batch=inputs)
    finally:
        for table, name, tensor in changed:
            table[name] = tensor


def _converted(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor of another type without memory."""
    empty = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device="meta")
    return nn.Parameter(empty, requires_grad=tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty


def repeated_blocks(module: nn.Module) -> list[nn.Module]:
    """The blocks of the model's longest chain: at least three modules of one class with parameters in one container."""
    best: list[nn.Module] = []
    for part in module.modules():
        kinds: dict[type, list[nn.Module]] = {}
        for child in part.children():
            if any(True for _ in child.parameters()):
                kinds.setdefault(type(child), []).append(child)
        for blocks in kinds.values():
            if len(blocks) >= 3 and _weight(blocks) > _weight(best):
                best = blocks
    return best


def _weight(blocks: list[nn.Module]) -> int:
    return sum(parameter.numel() for block in blocks for parameter in block.parameters())


@contextmanager
def with_kept_blocks(blocks: list[nn.Module]) -> Iterator[None]:
    """While active, capture keeps the results of these blocks for backward, which recomputes everything else."""

    def keep(block: nn.Module, arguments: Any, result: Any) -> None:
        for tensor in flatten(result)[0]:
            keep_for_backward(tensor)

    with ExitStack() as stack:
        for block in blocks:
            stack.callback(block.register_forward_hook(keep).remove)
        yield
