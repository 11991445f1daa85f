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

_NAME = "checkpoint-{step:08d}-{process}.pilotage"
_STEP = r"checkpoint-(\d+)-{process}\.pilotage"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where training had got to."""

    step: int
    position: Any
    """What the caller has saved beside it as plain data, the place in the data for instance."""


@dataclass(frozen=True, kw_only=True)
class _Contents:
    """The file of one instance, or of one of its stages."""

    checkpoint: Checkpoint
    content: dict[str, Any]
    tensors: dict[str, Tensor]

    def named(self, prefix: str) -> dict[str, Tensor]:
        start = f"{prefix}/"
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a job in one folder: one file for each step and instance, or for each of its stages."""

    folder: Path
    keep: int = 3
    """How many of the last ones stay."""

    def __post_init__(self) -> None:
        if self.keep < 2:
            raise OptionError(
                f"keep is {self.keep}. At least 2 have to stay: an instance may be one behind the others."
            )

    def save(self, executor: Executor, step: int, position: Any = None) -> Path:
        """Write weights, buffers of all replicas, optimizer and random streams, as far as this process has them."""
        session, process = executor.session, _process(executor)
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
        path = self._path(step, process)
        write_archive(path, content, tensors)
        for old in self._steps(process)[: -self.keep]:
            self._path(old, process).unlink(missing_ok=True)
        return path

    def restore(self, executor: Executor) -> Checkpoint | None:
        """Go on from the last step that every process has a whole file of; None where there is none."""
        process, found = _process(executor), None
        for unfinished in self.folder.glob(f".checkpoint-*-{process}.pilotage.*"):
            unfinished.unlink(missing_ok=True)
        for step in self._common_steps(executor):
            contents = self._read(step, process)
            if all(_of_everyone(executor, contents is not None)):
                found = contents
                break
        if found is None:
            return None
        self._load(executor, found)
        return found.checkpoint

    def _common_steps(self, executor: Executor) -> list[int]:
        """The steps that all processes have, the last one first."""
        everyone = _of_everyone(executor, self._steps(_process(executor)))
        return sorted(set.intersection(*map(set, everyone)), reverse=True)

    def _steps(self, process: str) -> list[int]:
        pattern = re.compile(_STEP.format(process=process))
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))

    def _path(self, step: int, process: str) -> Path:
        return self.folder / _NAME.format(step=step, process=process)

    def _read(self, step: int, process: str) -> _Contents | None:
        try:
            content, tensors = read_archive(self._path(step, process))
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
        load_weights(executor.module, {**host, **_of_all_stages(executor, found.named("parameter"))})
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
        for name, buffer in _of_all_stages(executor, found.named("buffer/0")).items():
            host[name].copy_(buffer)
        session.streams.states = [*found.named("random").values()]


def _process(executor: Executor) -> str:
    """What files of this process are called: by its instance and, where that is several processes, its stage."""
    instance = f"{executor.execution.instance:04d}"
    return instance if executor.line is None else f"{instance}-{executor.line.stage:02d}"


def _of_everyone(executor: Executor, value: Any) -> list[Any]:
    if executor.line is not None:
        return executor.line.peers.gather_everywhere(value)
    return [value] if executor.peers is None else executor.peers.gather(value)


def _of_all_stages(executor: Executor, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    parts = [tensors] if executor.line is None else executor.line.gather(tensors)
    return {name: tensor for part in parts for name, tensor in part.items()}
