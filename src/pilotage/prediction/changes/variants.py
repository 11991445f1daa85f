"""Changed subjects: the same module with other options or types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.prediction.subject import Subject
from pilotage.program.specification import TensorSpec

__all__ = ["Conversion", "in_type", "repeated_blocks", "types_of_attributes", "with_accumulation"]

Conversion = tuple[str, str]
"""A module by its path, and an attribute of it that is a type."""


def with_accumulation(subject: Subject, micro_batches: int) -> Subject:
    """The same with another number of micro-batches for each update."""
    execution = subject.execution
    batching = replace(execution.batching, gradient_accumulation=micro_batches)
    return replace(subject, execution=replace(execution, batching=batching))


def types_of_attributes(module: nn.Module) -> list[Conversion]:
    """Attributes of modules that are float32: types that forward computes in, whatever the type of its weights."""
    return [
        (path, name)
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if value is torch.float32
    ]


@contextmanager
def in_type(subject: Subject, dtype: torch.dtype) -> Iterator[Subject]:
    """While active, the module's float32 tensors and types are replaced; yields the subject with such inputs."""
    changed: list[tuple[dict[str, Any], str, Any]] = []
    made: dict[int, Tensor] = {}
    try:
        for part in subject.module.modules():
            for table in (part._parameters, part._buffers):
                for name, tensor in table.items():
                    if tensor is not None and tensor.dtype == torch.float32:
                        changed.append((table, name, tensor))
                        table[name] = made.setdefault(id(tensor), _converted(tensor, dtype))  # type: ignore[assignment]
        for path, name in types_of_attributes(subject.module):
            attributes = vars(subject.module.get_submodule(path))
            changed.append((attributes, name, torch.float32))
            attributes[name] = dtype
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
