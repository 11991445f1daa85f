"""All that training goes on from, in files that are whole or not there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError, ProgramFileError
from pilotage.program.archive import read_archive, write_archive
from pilotage.program.layout import Slot
from pilotage.runtime.executor import Executor
from pilotage.runtime.session import OptimizerState
from pilotage.runtime.stored import load_weights

_NAME = "checkpoint-{step:08d}-{instance:04d}.pilotage"
_STEP = r"checkpoint-(\d+)-{instance:04d}\.pilotage"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where training had got to."""

    step: int
    position: Any
    """What the caller has saved beside it as plain data, the place in the data for instance."""


@dataclass(frozen=True, kw_only=True)
class _Contents:
    """One instance's file."""

    checkpoint: Checkpoint
    content: dict[str, Any]
    tensors: dict[str, Tensor]

    def named(self, prefix: str) -> dict[str, Tensor]:
        start = f"{prefix}/"
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a job in one folder: one file for each step and instance."""

    folder: Path
    keep: int = 3
    """How many of the last ones stay."""

    def __post_init__(self) -> None:
        if self.keep < 2:
            raise OptionError(
                f"keep is {self.keep}. At least 2 have to stay: an instance may be one behind the others."
            )

    def save(self, executor: Executor, step: int, position: Any = None) -> Path:
        """Write weights, buffers of all replicas, optimizer and random streams of this instance."""
        session, instance = executor.session, executor.execution.instance
        state, optimizer = session.attached, session.optimizer_state()
        tensors = {f"parameter/{name}": tensor for name, tensor in state.parameters.items()}
        for replica in range(session.replicas):
            tensors |= {f"buffer/{replica}/{name}": tensor for name, tensor in state.buffers(replica).items()}
        tensors |= {f"random/{number}": stream for number, stream in enumerate(session.streams.states)}
        if optimizer is not None:
            tensors |= {f"slot/{slot.name}/{slot.parameter}": tensor for slot, tensor in optimizer.slots.items()}
        content = {
            "step": step,
            "position": position,
            "updates": 0.0 if optimizer is None else optimizer.updates,
            "loss_scale": 1.0 if optimizer is None else optimizer.loss_scale,
        }
        path = self.folder / _NAME.format(step=step, instance=instance)
        write_archive(path, content, tensors)
        for old in self._steps(instance)[: -self.keep]:
            self._path(old, instance).unlink(missing_ok=True)
        return path

    def restore(self, executor: Executor) -> Checkpoint | None:
        """Go on from the last step that every instance has a whole file of; None where there is none."""
        instance, found = executor.execution.instance, None
        for unfinished in self.folder.glob(f".checkpoint-*-{instance:04d}.pilotage.*"):
            unfinished.unlink(missing_ok=True)
        for step in self._common_steps(executor):
            contents = self._read(step, instance)
            if all(_of_everyone(executor, contents is not None)):
                found = contents
                break
        if found is None:
            return None
        self._load(executor, found)
        return found.checkpoint

    def _common_steps(self, executor: Executor) -> list[int]:
        """The steps that all instances have, the last one first."""
        everyone = _of_everyone(executor, self._steps(executor.execution.instance))
        return sorted(set.intersection(*map(set, everyone)), reverse=True)

    def _steps(self, instance: int) -> list[int]:
        pattern = re.compile(_STEP.format(instance=instance))
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))

    def _path(self, step: int, instance: int) -> Path:
        return self.folder / _NAME.format(step=step, instance=instance)

    def _read(self, step: int, instance: int) -> _Contents | None:
        try:
            content, tensors = read_archive(self._path(step, instance))
        except (ProgramFileError, FileNotFoundError):
            return None
        checkpoint = Checkpoint(step=content["step"], position=content["position"])
        return _Contents(checkpoint=checkpoint, content=content, tensors=tensors)

    @staticmethod
    @torch.no_grad()
    def _load(executor: Executor, found: _Contents) -> None:
        session = executor.session
        state = session.attached
        host = dict(executor.module.named_buffers())
        load_weights(executor.module, {**host, **found.named("parameter")})
        executor.send_weights()
        slots = {Slot(*name.split("/", 1)): tensor for name, tensor in found.named("slot").items()}
        if session.program.trains:
            optimizer = OptimizerState(
                slots=slots, updates=found.content["updates"], loss_scale=found.content["loss_scale"]
            )
            executor.set_optimizer_state(optimizer)
            executor.settle()
        # Only now: buffers may differ among replicas and instances, which the settling ends.
        for replica in range(session.replicas):
            for name, buffer in found.named(f"buffer/{replica}").items():
                state.buffers(replica)[name].copy_(buffer)
        for name, buffer in found.named("buffer/0").items():
            host[name].copy_(buffer)
        session.streams.states = [*found.named("random").values()]


def _of_everyone(executor: Executor, value: Any) -> list[Any]:
    return [value] if executor.peers is None else executor.peers.gather(value)
