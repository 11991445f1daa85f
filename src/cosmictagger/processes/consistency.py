"""Checking that the processes actually train one network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cosmictagger.errors import DeviceError
from cosmictagger.processes.process_group import Processes


@dataclass(slots=True)
class ConsistencyCheck:
    """Compares data and weights across processes during training."""

    processes: Processes
    parameters: Collection[str]
    """Names of the weights; statistics of normalisation may differ."""

    steps: list[int] = field(default_factory=list)
    """The updates after which the weights were compared and found equal."""

    def check(self, step: int, entries: Sequence[int], weights: Mapping[str, Tensor]) -> None:
        """Raise if processes were given the same events or have different weights."""
        if not self.processes.is_distributed or (self.steps and self.steps[-1] == step):
            return
        gathered = self.processes.gather((list(entries), _checksums(weights, self.parameters)))
        _check_entries(step, [seen for seen, _ in gathered])
        _check_weights(step, [sums for _, sums in gathered])
        self.steps.append(step)

    def describe(self, replicas: int) -> str:
        """The result, for the placement report."""
        if not self.processes.is_distributed:
            return "none: one instance" if replicas == 1 else f"mean over {replicas} replicas in one instance"
        total = replicas * self.processes.size
        if not self.steps:
            return f"mean over {total} replicas by {self.processes.backend}, NOT CHECKED"
        steps = ", ".join(map(str, self.steps if len(self.steps) < 6 else [*self.steps[:2], "…", *self.steps[-2:]]))
        return f"mean over {total} replicas by {self.processes.backend}; weights equal everywhere after step {steps}"


def _checksums(weights: Mapping[str, Tensor], parameters: Collection[str]) -> dict[str, int]:
    """Exact sums of the bits, which do not depend on the order of addition."""
    return {name: _bits(weights[name]) for name in parameters}


def _bits(tensor: Tensor) -> int:
    whole = tensor.detach().contiguous()
    kind = torch.int32 if whole.element_size() == 4 else torch.int16
    return int(whole.view(kind).sum(dtype=torch.int64))


def _check_entries(step: int, seen: list[list[int]]) -> None:
    for rank, entries in enumerate(seen):
        for other, others in enumerate(seen[:rank]):
            if shared := sorted(set(entries) & set(others)):
                raise DeviceError(
                    f"Processes {other} and {rank} were both given event {shared[0]} in step {step}: the data is not "
                    "divided. Give every process the same data.seed and run.minibatch_size."
                )


def _check_weights(step: int, sums: list[dict[str, int]]) -> None:
    for rank, theirs in enumerate(sums):
        unequal = [name for name, value in theirs.items() if value != sums[0][name]]
        if unequal:
            raise DeviceError(
                f"After step {step} the weights of process {rank} differ from those of process 0 ({unequal[0]} and "
                f"{len(unequal) - 1} more). Either gradients are not exchanged, and each process trains a network of "
                "its own, or the processes compute their updates differently. Nothing was saved."
            )
