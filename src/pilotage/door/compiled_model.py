"""A module that runs as a program, as `pilotage.training` and `pilotage.inference` return it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from pilotage.door.leftovers import answer_backward, watch_zero_grad
from pilotage.errors import LostModelError
from pilotage.interrupts import INTERRUPTS
from pilotage.optim.family import Refinements
from pilotage.optim.following import FollowedOptimizer
from pilotage.options.batching import Batching
from pilotage.passes.anchors import tensor_names
from pilotage.program.graphs.tracebacks import ShortTracebacks, shorten
from pilotage.program.layout import Slot
from pilotage.runtime.checkpoints.folder import Checkpoint, Checkpoints
from pilotage.runtime.checkpoints.run import CheckpointRun
from pilotage.runtime.executor import Executor
from pilotage.runtime.guards import GuardedModel, executor_of
from pilotage.runtime.optimizer_state import OptimizerState, refuse_another_kind, refuse_other_slots
from pilotage.runtime.record import RunRecord

_SHORT = ShortTracebacks()


class CompiledModel(GuardedModel):
    """A module that runs as a compiled program; call it as you would call the module."""

    def __init__(self, executor: Executor, module: nn.Module, refinements: Refinements | None = None) -> None:
        self._executor = executor
        self._refinements = refinements or Refinements()
        self._anchored: dict[str, Tensor] = {}
        self._batching = executor.execution.batching
        self._is_new = True
        self.module = module
        """The module as it was given; reading it shows the trained weights."""
        self._run = CheckpointRun()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; a training program also updates the weights."""
        executor = self._executor
        try:
            with executor.calling:
                outputs = executor.run(executor.bind(*args, **kwargs))
                if labels := executor.execution.anchors:
                    first = len(outputs) - len(labels)
                    self._anchored = dict(zip(labels, outputs[first:], strict=True))
                    outputs = outputs[:first]
                if self._is_new:
                    self._answer_leftovers(outputs)
                return executor.rebuild(outputs)
        except Exception as error:
            shorten(error)
            raise

    def _answer_leftovers(self, outputs: Iterable[Tensor]) -> None:
        """Make leftover lines of a plain training loop, such as ``loss.backward()``, say that they are not needed."""
        self._is_new = False
        optimizer = self._executor.host_steps.optimizer
        if optimizer is not None:
            answer_backward(outputs)
            watch_zero_grad(optimizer, self._executor.warn)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for calls like this one, without running."""
        with _SHORT:
            self._executor.compile(*args, **kwargs)

    def set_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Continue training with another optimizer; changes of the present one are noticed without this call."""
        self._executor.follow(FollowedOptimizer(optimizer, self._executor.module, self._refinements))

    @property
    def batching(self) -> Batching:
        """How many micro-batches a call takes, and in which loops."""
        return self._batching

    @property
    def anchored(self) -> Mapping[str, Tensor]:
        """What the option ``anchors`` asked for, by name: values inside the program as the last call computed them."""
        return self._anchored

    def tensor_names(self) -> list[str]:
        """The names that ``anchors`` takes; call or compile the model first."""
        with self._executor.turn:
            return tensor_names(self._executor.captured)

    def expect_host_steps(self) -> None:
        """Do not report that the optimizer is stepped on the host, where a loop of another library does that anyway."""
        self._executor.host_steps.ignore()
        self._is_new = False

    def state_dict(self) -> dict[str, Any]:
        """A copy of the module's state dictionary between two calls, even while another thread trains."""
        with self._executor.turn, torch.no_grad():
            return {name: _copied(value) for name, value in self.module.state_dict().items()}

    def optimizer_state_dict(self) -> dict[str, Any]:
        """The optimizer's state as tensors and plain numbers on the host; empty before the first call."""
        with self._executor.turn:
            state = self._executor.session.whole_optimizer_state() if self._executor.is_compiled else None
        if state is None:
            return {}
        slots = {f"{slot.name}/{slot.parameter}": tensor for slot, tensor in state.slots.items()}
        plan = self._executor.plan
        kind = {} if plan is None else {"optimizer": plan.kind}
        return {"slots": slots, "updates": state.updates, "loss_scale": state.loss_scale, **kind}

    def load_optimizer_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue training from a state of the same kind of optimizer; compile the model first."""
        slots = {Slot(*name.split("/", 1)): tensor for name, tensor in state["slots"].items()}
        loaded = OptimizerState(slots=slots, updates=state["updates"], loss_scale=state["loss_scale"])
        with self._executor.turn:
            session, plan = self._executor.session, self._executor.plan
            refuse_another_kind(state.get("optimizer"), plan, "The given state")
            if plan is not None:
                refuse_other_slots(loaded, plan, {} if session.state is None else session.state.slots)
            self._executor.set_optimizer_state(loaded)

    def save_checkpoint(self, folder: str | Path, step: int, *, keep: int = 3, position: Any = None) -> Path:
        """Write all that training continues from, and keep the last few; ``position`` is plain data of the caller's.

        Raises an OptionError if the folder holds checkpoints of another run. The first save of a run that was not
        restored is a collective call: every instance and stage must make it.
        """
        with self._executor.turn, INTERRUPTS.open():
            return Checkpoints(Path(folder), keep=keep, run=self._run).save(self._executor, step, position)

    def restore_checkpoint(self, folder: str | Path) -> Checkpoint | None:
        """Continue the run in a folder from its last checkpoint that every instance has; compile the model first.

        Returns None if nothing was saved there yet. A damaged file is named in a warning if an older checkpoint is
        whole in every instance; otherwise a ProgramFileError names every damaged file.
        """
        with self._executor.turn:
            return Checkpoints(Path(folder), run=self._run).restore(self._executor)

    def detach(self) -> None:
        """Free the device; the next call takes it again."""
        self._executor.detach()

    def destroy(self) -> None:
        """Fetch the weights and drop the program; the next call compiles it again and may differ from earlier calls."""
        self._executor.destroy()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        """Refuse to be copied: a program belongs to its device."""
        self._refuse_copy()

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a program belongs to its device."""
        self._refuse_copy()

    def _refuse_copy(self) -> NoReturn:
        raise LostModelError(
            "A wrapped model cannot be copied or pickled: its program and its weights are on a device. Copy or pickle "
            "its .module, which shows the trained weights, and wrap the copy. save_checkpoint() writes all that "
            "training continues from."
        )

    @property
    def record(self) -> RunRecord:
        """What was run, and on which device."""
        return self._executor.record


def record_of(model: Any) -> RunRecord | None:
    """What a wrapped model has run and where, a drop-in's too; None for anything that no program runs."""
    executor = executor_of(model)
    return None if executor is None else executor.record


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)
