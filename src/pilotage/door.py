"""The engine's own public door, for people who never saw PopTorch.

step = pilotage.training(model, optimizer, loss=torch.nn.CrossEntropyLoss(), device_iterations=50)
for images, labels in loader:
    outputs, loss = step(images, labels)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypedDict, TypeVar, Unpack

import torch
from torch import Tensor, nn

from pilotage.capture.loss.returned import require_scalar
from pilotage.capture.loss.search import mark_loss
from pilotage.distributed.peers import peers_here
from pilotage.distributed.pipeline_group import pipeline_group_here
from pilotage.errors import LossError, LostModelError, OptionError
from pilotage.events import Listener
from pilotage.interrupts import INTERRUPTS
from pilotage.logs import log_event
from pilotage.optim.following import FollowedOptimizer
from pilotage.options.batching import Batching
from pilotage.options.check import Check, OnMismatch
from pilotage.options.choices import NonFiniteLoss, OutputMode, PipelineOrder, Reduction, Tier
from pilotage.options.execution import Execution
from pilotage.options.suggestions import did_you_mean
from pilotage.program.graphs.tracebacks import ShortTracebacks
from pilotage.program.layout import Slot
from pilotage.program.structure import unflatten
from pilotage.runtime.checkpoints.folder import Checkpoint, Checkpoints
from pilotage.runtime.checkpoints.run import CheckpointRun
from pilotage.runtime.executor import Executor
from pilotage.runtime.guards import GuardedModel
from pilotage.runtime.host_steps import HostSteps
from pilotage.runtime.optimizer_state import OptimizerState, refuse_another_kind, refuse_other_slots
from pilotage.runtime.record import RunRecord

_REMEDY = (
    "Leave out optimizer.step(), together with zero_grad() and backward(). To train with another optimizer, give it to "
    "pilotage.training or set_optimizer()."
)


_SHORT = ShortTracebacks()

_Choice = TypeVar("_Choice", bound=Enum)


class Options(TypedDict, total=False):
    """The options of `training` and `inference`; `pilotage.options` says more about each.

    Large because each key is one option.
    """

    device_iterations: int
    """How often the device loops before a call returns (1)."""

    gradient_accumulation: int
    """How many micro-batches make one update (1)."""

    replicas: int
    """How many copies of the model this process runs (1)."""

    outputs: str | OutputMode | None
    """Which outputs a call returns: those of the last update when training, all of them otherwise."""

    output_period: int
    """With the outputs ``every_n``: every how many device iterations (1)."""

    reduction: str | Reduction
    """How gradients of micro-batches are combined (``mean``)."""

    seed: int | None
    """The seed of the program's random numbers; without one it draws from torch's generator."""

    broadcast_buffers: bool
    """Whether to refuse a forward that writes to a buffer, so that all replicas and instances keep equal ones (False).
    Otherwise each replica has its own, such as statistics of normalisation, and the module shows the first one's."""

    backend: str | None
    """The kind of device; by default the best one present."""

    cards: Sequence[str] | None
    """The devices to use; by default all of the backend's."""

    tier: str | Tier | None
    """How the program is executed; by default as a graph first and as compiled code once that is ready."""

    cache_directory: str | Path | None
    """Where compiled code is kept; naming one means to compile at once."""

    check: str | int | None
    """When to compare with eager PyTorch: ``first`` call, ``off``, or every n calls; by default the first call, unless
    that would take too long."""

    on_mismatch: str | OnMismatch
    """What to do if the program differs from eager PyTorch by more than rounding (``raise``)."""

    nonfinite_loss: str | NonFiniteLoss
    """What to do about a loss that is NaN or infinite (``warn``)."""

    pipeline: str | PipelineOrder | None
    """The order in which stages work; by default the one that needs the least memory."""


class CompiledModel(GuardedModel):
    """A module that runs as a compiled program; call it as you would call the module."""

    def __init__(self, executor: Executor, module: nn.Module) -> None:
        self._executor = executor
        self.module = module
        """The module as it was given; reading it shows the trained weights."""
        self._run = CheckpointRun()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; a training program also updates the weights."""
        executor = self._executor
        with _SHORT, executor.calling:
            outputs = executor.run(executor.bind(*args, **kwargs))
            return unflatten(executor.output_structure, outputs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for calls like this one, without running."""
        with _SHORT:
            self._executor.compile(*args, **kwargs)

    def set_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Continue training with another optimizer; changes of the present one are noticed by themselves."""
        self._executor.follow(FollowedOptimizer(optimizer, self._executor.module))

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


class WithLoss(nn.Module):
    """A module and its loss: the last argument of a call is the target."""

    def __init__(self, module: nn.Module, loss: Callable[[Any, Any], Tensor]) -> None:
        super().__init__()
        self.module = module
        self.loss = loss

    def forward(self, *arguments: Any) -> tuple[Any, Tensor]:
        """The module's output, and its loss against the last argument."""
        *inputs, target = arguments
        output = self.module(*inputs)
        loss = self.loss(output, target)
        if not isinstance(loss, Tensor):
            raise LossError(f"loss= returned {type(loss).__name__}, and backward starts from a tensor of one element.")
        require_scalar(loss, "What loss= returned")
        return output, mark_loss(loss)


def training(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    distributed: bool = False,
    listeners: Iterable[Listener] = (),
    **options: Unpack[Options],
) -> CompiledModel:
    """Wrap a module so that each call trains it: forward, loss, backward and update in one captured program.

    With ``loss`` the last argument of each call is the target, and a call returns (output, loss). Without it, the loss
    is what forward returns: the only scalar among its outputs that requires a gradient, or the entry ``loss`` of a
    dictionary, data class or named tuple, such as a Hugging Face output. If there is no scalar, a tensor of one element
    counts, as for ``backward()``. `pilotage.mark_loss` inside forward overrides both, and then the loss need not be
    returned. No loss, or more than one, is a `LossError`.

    Breaking change: earlier versions trained on the torch loss function that forward called, and left out whatever was
    computed after it.

    The optimizer's ``param_groups`` are read at every call, so learning-rate schedules work as in eager PyTorch.
    With ``distributed`` every update is shared with the other instances that poprun, torchrun, mpirun or srun has
    started, and a model of several stages (`pilotage.enter_stage`) with the other processes of this instance. Options
    are those of `Options`.
    """
    _refuse_unknown(options)
    whole = module if loss is None else WithLoss(module, loss)
    followed = FollowedOptimizer(optimizer, whole)
    plan = followed.first_plan()
    settings, peers = execution(**options), peers_here() if distributed else None
    if peers is not None:
        settings = settings.shared_with(instance=peers.world.rank, instances=peers.world.size)
    executor = Executor(
        whole,
        execution=settings,
        plan=plan,
        listeners=(log_event, *listeners),
        peers=peers,
        pipeline_group=pipeline_group_here() if distributed else None,
        optimizer=followed,
        host_steps=HostSteps(optimizer, remedy=_REMEDY, sends_edits=True),
        follows_module=True,
    )
    return CompiledModel(executor, module)


def inference(
    module: nn.Module, *, distributed: bool = False, listeners: Iterable[Listener] = (), **options: Unpack[Options]
) -> CompiledModel:
    """Wrap a module so that each call runs its forward as a captured program.

    With ``distributed`` a model of several stages is shared with the other processes of this instance.
    """
    _refuse_unknown(options)
    executor = Executor(
        module,
        execution=execution(**options),
        listeners=(log_event, *listeners),
        pipeline_group=pipeline_group_here() if distributed else None,
        follows_module=True,
    )
    return CompiledModel(executor, module)


def record_of(model: Any) -> RunRecord | None:
    """What a wrapped model has run and where, a drop-in's too; None for anything that no program runs."""
    return model._executor.record if isinstance(model, GuardedModel) else None


def execution(
    *,
    device_iterations: int = 1,
    gradient_accumulation: int = 1,
    replicas: int = 1,
    outputs: str | OutputMode | None = None,
    output_period: int = 1,
    reduction: str | Reduction = Reduction.MEAN,
    seed: int | None = None,
    broadcast_buffers: bool = False,
    backend: str | None = None,
    cards: Sequence[str] | None = None,
    tier: str | Tier | None = None,
    cache_directory: str | Path | None = None,
    check: str | int | None = None,
    on_mismatch: str | OnMismatch = OnMismatch.RAISE,
    nonfinite_loss: str | NonFiniteLoss = NonFiniteLoss.WARN,
    pipeline: str | PipelineOrder | None = None,
) -> Execution:
    """The options of a compiled model, from plain numbers and words."""
    return Execution(
        batching=Batching(
            device_iterations=device_iterations, gradient_accumulation=gradient_accumulation, replicas=replicas
        ),
        output_mode=None if outputs is None else _named(OutputMode, outputs, "outputs"),
        output_period=output_period,
        gradient_reduction=_named(Reduction, reduction, "reduction"),
        random_seed=seed,
        broadcast_buffers=broadcast_buffers,
        backend=backend,
        cards=None if cards is None else tuple(cards),
        tier=None if tier is None else _named(Tier, tier, "tier"),
        cache_directory=None if cache_directory is None else Path(cache_directory),
        check=Check.of(check, on_mismatch),
        nonfinite_loss=_named(NonFiniteLoss, nonfinite_loss, "nonfinite_loss"),
        pipeline=None if pipeline is None else _named(PipelineOrder, pipeline, "pipeline"),
    )


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    known = Options.__annotations__
    for name in options:
        if name not in known:
            listed = f"The options are: {', '.join(known)}."
            raise TypeError(f"got an unexpected keyword argument {name!r}.{did_you_mean(name, known)} {listed}")


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else copy.deepcopy(value)


def _named(choices: type[_Choice], chosen: str | _Choice, option: str) -> _Choice:
    try:
        return choices(chosen)
    except ValueError:
        names = ", ".join(repr(choice.value) for choice in choices)
        raise OptionError(f"{option} is {chosen!r}. Choose one of: {names}.") from None
