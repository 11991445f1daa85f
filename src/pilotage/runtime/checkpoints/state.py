"""What a checkpoint of one process contains, and how it is loaded into a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError
from pilotage.program.layout import Counter, Slot
from pilotage.runtime.checkpoints.files import CheckpointFile
from pilotage.runtime.executor import Executor
from pilotage.runtime.optimizer_state import OptimizerState, refuse_another_kind
from pilotage.runtime.stored import load_weights


@dataclass(frozen=True, kw_only=True)
class CheckpointContents:
    """The file of one instance, or of one of its stages."""

    file: CheckpointFile
    content: dict[str, Any]
    tensors: dict[str, Tensor]

    def named(self, prefix: str) -> dict[str, Tensor]:
        """The tensors of one kind, by the rest of their names."""
        start = f"{prefix}/"
        return {name.removeprefix(start): tensor for name, tensor in self.tensors.items() if name.startswith(start)}


def tensors_of(executor: Executor) -> dict[str, Tensor]:
    """Everything that a checkpoint of this process contains, still on its devices."""
    session = executor.session
    state = session.attached
    tensors = {f"parameter/{name}": tensor for name, tensor in state.parameters.items()}
    for replica in state.replicas:
        tensors |= {f"buffer/{replica}/{name}": tensor for name, tensor in state.buffers(replica).items()}
    tensors |= {f"random/{number}": stream for number, stream in enumerate(session.streams.states)}
    if session.program.trains:
        tensors |= {f"slot/{slot.name}/{slot.parameter}": tensor for slot, tensor in state.slots.items()}
    return tensors


def optimizer_of(executor: Executor) -> dict[str, float | str]:
    """The optimizer's counters and its kind."""
    if not executor.session.program.trains or executor.plan is None:
        return {"updates": 0.0, "loss_scale": 1.0}
    counters = executor.session.attached.counters
    return {
        "updates": float(counters[Counter.UPDATES]),
        "loss_scale": float(counters.get(Counter.LOSS_SCALE, 1.0)),
        "optimizer": executor.plan.kind,
    }


def refuse_another_model(executor: Executor, found: CheckpointContents) -> None:
    """Raise if a checkpoint belongs to a model with other tensors, before anything is changed."""
    expected = tensors_of(executor)
    problems = [
        *(f"{name} is not in the file" for name in expected if name not in found.tensors),
        *(f"{name} is not in the model" for name in found.tensors if name not in expected),
        *(
            f"{name} is {tuple(there.shape)} {there.dtype} in the file and {tuple(here.shape)} {here.dtype} in the "
            "model"
            for name, here in expected.items()
            # The size of a random stream's state depends on the kind of device.
            if not name.startswith("random/")
            and (there := found.tensors.get(name)) is not None
            and (there.shape, there.dtype) != (here.shape, here.dtype)
        ),
    ]
    if all(problem.startswith("slot/") for problem in problems):
        where = f"The state of the optimizer in {found.file.path}"
        refuse_another_kind(found.content.get("optimizer"), executor.plan, where)
    if problems:
        more = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise OptionError(
            f"{found.file.path} was written from another model or with other options: {'; '.join(problems[:3])}{more}. "
            "Build the model, optimizer and replicas as they were, or choose another folder."
        )


@torch.no_grad()
def load(executor: Executor, found: CheckpointContents) -> None:
    """Resume training from a checkpoint of this process."""
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
        executor.synchronize()
    # After synchronizing, which would make the buffers of all replicas and instances equal.
    for replica in state.replicas:
        for name, buffer in found.named(f"buffer/{replica}").items():
            state.buffers(replica)[name].copy_(buffer)
    for name, buffer in _of_all_stages(executor, found.named("buffer/0")).items():
        host[name].copy_(buffer)
    executor.weights.is_current()
    _load_streams(executor, [*found.named("random").values()])


def _load_streams(executor: Executor, saved: list[Tensor]) -> None:
    session = executor.session
    if {stream.numel() for stream in saved} == {stream.numel() for stream in session.streams.states}:
        session.streams.states = saved
    elif session.program.draws_random_numbers:
        executor.warn(
            "The checkpoint was written on another kind of device: random numbers start from the present seed."
        )


def _of_all_stages(executor: Executor, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    parts = [tensors] if executor.pipeline_group is None else executor.pipeline_group.gather(tensors)
    return {name: tensor for part in parts for name, tensor in part.items()}
