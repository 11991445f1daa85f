"""The subject of a prediction: a module with its optimizer and options, and the form of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from torch import nn

from pilotage.optim.rule import OptimizerPlan
from pilotage.options.execution import Execution
from pilotage.program.layout import ReplicaGroups
from pilotage.program.specification import TensorSpec, contiguous_strides
from pilotage.program.structure import Parsers, Structure

__all__ = ["Loading", "Subject"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loading:
    """How batches are prepared for the program."""

    sample_seconds: float = 0.0
    """The host's time to prepare one sample."""

    overlaps: bool = False
    """Whether the device works while batches are prepared."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Everything that a program is captured from."""

    name: str
    module: nn.Module
    modes: Mapping[nn.Module, bool]
    plan: OptimizerPlan | None
    execution: Execution
    arguments: Structure
    micro_batch: tuple[TensorSpec, ...]
    """The tensors of one micro-batch."""

    replica_groups: Mapping[str, ReplicaGroups] = field(default_factory=dict)
    parsers: Parsers = field(default_factory=dict)
    loading: Loading = field(default_factory=Loading)
    around_forward: Callable[[nn.Module], AbstractContextManager[object]] | None = None
    """What a drop-in does around each run of forward."""

    @property
    def samples(self) -> int:
        """How many samples one micro-batch has: the most frequent first dimension of its tensors."""
        sizes = [each.shape[0] for each in self.micro_batch if each.shape]
        return max(sizes, key=sizes.count) if sizes else 1

    def with_samples(self, samples: int) -> Subject:
        """The same with micro-batches of another size."""
        before = self.samples
        parts = tuple(_resized(each, samples) if each.shape[:1] == (before,) else each for each in self.micro_batch)
        return replace(self, micro_batch=parts)


def _resized(specification: TensorSpec, samples: int) -> TensorSpec:
    shape = (samples, *specification.shape[1:])
    return TensorSpec(shape, contiguous_strides(shape), specification.dtype)
