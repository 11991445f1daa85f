"""The optimizer of a compiled model: its values go to the device, its state comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from pilotage.engine import (
    OPTIMIZER_WAS_CALLED,
    Execution,
    Executor,
    OptimizerPlan,
    OptimizerState,
    OptionError,
    Pooling,
)
from poptorch._checks.unread_settings import UnreadSettings
from poptorch._errors import createPoptorchError
from poptorch._logging import logger
from poptorch.enums import MeanReductionStrategy
from poptorch.optim.base import Optimizer
from poptorch.optim.handover import OptimizerReader
from poptorch.optim.refining import wants_running_mean
from poptorch.optim.state_names import from_ipu_state, ipu_state_names, to_ipu_state
from poptorch.optim.value_names import divided_like, from_ipu_param, grouping, to_ipu_param
from poptorch.options import Options

__all__ = ["OptimizerLink"]

_LOSS_SCALE = "lossScaleUpdateFactor"


class OptimizerLink:
    """Ties a model's optimizer to its program; values are read only when the optimizer is set.

    Large because values, state, types and loaded files each go their own way between the two.
    """

    def __init__(
        self,
        module: nn.Module,
        options: Options,
        optimizer: torch.optim.Optimizer,
        *,
        compiled: OptimizerPlan | None = None,
    ) -> None:
        self._module = module
        self._names: dict[int, str] = {}
        popart = options._Popart.settings
        self._scales_losses = popart.automatic_loss_scaling
        self._rounds_at_random = popart.stochastic_rounding
        self._reader = OptimizerReader(
            relaxed=options._relax_optimizer_checks, automatic_loss_scaling=self._scales_losses
        )
        self.optimizer = optimizer
        self._kept: OptimizerState | None = None
        self._undivided: OptimizerPlan | None = None
        """The plan in the optimizer's own groups, if loaded values have divided them."""
        self._warned_of: Any = None
        """The loaded state whose missing entries were reported."""
        self.plan = self._read(optimizer, compiled=compiled)
        self._superseded = _outdated_values(optimizer)
        """Values of a state that the optimizer's settings, which were read later, replace."""
        self._pooling: Pooling | None = None
        self.pools_running_mean = wants_running_mean(optimizer)
        """Whether gradients are pooled in a type so narrow that a running mean is needed."""
        self._options = options
        self._show_pooling()
        self._unread = UnreadSettings(optimizer)
        self._logged = {position: group.values for position, group in enumerate(self.plan.groups)}

    def set(self, optimizer: torch.optim.Optimizer, executor: Executor) -> None:
        """Read the current values of an optimizer, the same one or another."""
        if executor.is_compiled and wants_running_mean(optimizer) and not self.pools_running_mean:
            raise ValueError(
                "The accumulation type of the optimizer cannot change: the model is already compiled. Call destroy() "
                "first, or keep the accumulation type."
            )
        compiled = executor.plan if executor.is_compiled else None
        plan = self._read(optimizer, compiled=compiled)
        try:
            executor.set_plan(plan)
        except OptionError as error:
            raise createPoptorchError(str(error)) from error
        self.plan = executor.plan or self.plan
        self._log_changes(plan)
        self._superseded = _outdated_values(optimizer)
        self.pools_running_mean |= not executor.is_compiled and wants_running_mean(optimizer)
        self._show_pooling()
        self._unread.read(optimizer)
        executor.host_steps.optimizer = optimizer
        if optimizer is not self.optimizer:
            self._replace(optimizer, executor)
        if executor.is_compiled:
            self._follow(executor)
        else:
            executor.execution = self.adapted(executor.execution)

    def _show_pooling(self) -> None:
        """Show in the model's own options that the optimizer's accumulation type needs a running mean."""
        training, running = self._options.Training, MeanReductionStrategy.Running
        if self.pools_running_mean and training.meanAccumulationAndReplicationReductionStrategy != running:
            self._options._unfreeze()
            training.setMeanAccumulationAndReplicationReductionStrategy(running)
            self._options._freeze()

    def _log_changes(self, plan: OptimizerPlan) -> None:
        for position, group in enumerate(plan.groups):
            if self._logged.get(position, group.values) != group.values:
                logger.debug("Updating group %d optimizer", position)
            self._logged[position] = group.values

    def _replace(self, optimizer: torch.optim.Optimizer, executor: Executor) -> None:
        self.let_go(executor)
        self.optimizer = optimizer
        self._kept = None
        if executor.is_compiled:
            self._offer_state()

    def adapted(self, execution: Execution) -> Execution:
        """The execution that this optimizer's accumulation type requires."""
        if self._pooling is None:
            self._pooling = execution.pooling
        return replace(execution, pooling=Pooling.RUNNING if self.pools_running_mean else self._pooling)

    def begin(self, executor: Executor) -> None:
        """Give a new program the optimizer's state, and let the optimizer show the device's state from now on."""
        if self._kept is not None:
            executor.set_optimizer_state(self._kept)
            self._kept = None
        else:
            self._offer_state()
        self._unread.look_for_others(self._module)
        self._follow(executor)

    def _offer_state(self) -> None:
        if isinstance(self.optimizer, Optimizer) and self.optimizer.has_state():
            self.optimizer.host_state_is_dirty = True

    def _follow(self, executor: Executor) -> None:
        if isinstance(self.optimizer, Optimizer):
            self.optimizer.follow(lambda: _device_state(executor))
            self.optimizer.ipu_state_is_dirty = not self.optimizer.host_state_is_dirty

    def go_offline(self) -> None:
        """Show no state of the device, since this program will not run here."""
        if isinstance(self.optimizer, Optimizer):
            self.optimizer.forget_device()

    def before_run(self, executor: Executor) -> bool:
        """Send a loaded optimizer state to the device, and warn of changes that were not read.

        Returns whether the loaded values need another program, which is to be compiled.
        """
        optimizer, needs_program = self.optimizer, False
        if isinstance(optimizer, Optimizer):
            if optimizer.host_state_is_dirty:
                self._send_loaded(optimizer, executor)
                needs_program = not executor.is_compiled
            # Before the run, since an interrupted run may have made some updates too.
            optimizer.ipu_state_is_dirty = True
        # torch's schedulers check this flag, and warn if the optimizer has made no step.
        setattr(optimizer, OPTIMIZER_WAS_CALLED, True)
        self._unread.check(executor.host_steps.transfers)
        return needs_program

    def _send_loaded(self, optimizer: Optimizer, executor: Executor) -> None:
        loaded = optimizer.get_state_dict()
        logger.info("Writing optimiser state tensors from host to IPU memory")
        current, plan = executor.optimizer_state(), executor.plan
        assert current is not None
        assert plan is not None
        named = loaded["ipu_state"] or {}
        if loaded["ipu_param"] is not self._warned_of:
            self._warned_of = loaded["ipu_param"]
            _warn_of_missing(loaded, plan)
        state = from_ipu_state(plan, named, current)
        if _LOSS_SCALE in named:
            state = replace(state, loss_scale=float(named[_LOSS_SCALE]))
        executor.set_optimizer_state(state)
        if self._superseded is None or loaded["ipu_param"] is not self._superseded:
            # The loaded values have 32 bits; if the optimizer's own settings agree, those are exact.
            fresh = self._read(optimizer, compiled=plan)
            self._use_loaded(from_ipu_param(fresh, loaded["ipu_param"] or {}, plan), plan, executor)
            self._unread.read(optimizer)
        optimizer.note_sent()

    def _use_loaded(self, loaded: OptimizerPlan, compiled: OptimizerPlan, executor: Executor) -> None:
        """Train with loaded values; if parameters of a group have different ones, the program has to be another."""
        if grouping(loaded) == grouping(compiled):
            executor.set_plan(loaded)
            return
        self._undivided = self._undivided or compiled
        executor.regroup(loaded)

    def _read(self, optimizer: torch.optim.Optimizer, *, compiled: OptimizerPlan | None) -> OptimizerPlan:
        if compiled is None or not _knows(self._names, optimizer):
            # Not at every step, since it walks over all modules and many programs set their optimizer at every step.
            self._names = {id(parameter): name for name, parameter in self._module.named_parameters()}
        undivided = compiled if compiled is None else self._undivided or compiled
        plan = replace(
            self._reader.plan(optimizer, self._names, compiled=undivided),
            automatic_loss_scaling=self._scales_losses,
            stochastic_rounding=self._rounds_at_random,
        )
        return plan if compiled is None or undivided is compiled else divided_like(plan, compiled)

    def let_go(self, executor: Executor) -> None:
        """Read the device's state for the last time."""
        if executor.is_compiled:
            self._kept = executor.optimizer_state()
        if isinstance(self.optimizer, Optimizer):
            self.optimizer.stop_following()


def _warn_of_missing(loaded: Mapping[str, Any], plan: OptimizerPlan) -> None:
    """Warn of what a loaded state does not have; the device keeps its values."""
    for what, key, present in (
        ("state", "ipu_state", ipu_state_names(plan)),
        ("parameter", "ipu_param", to_ipu_param(plan).keys()),
    ):
        for name in sorted(present - (loaded[key] or {}).keys()):
            logger.warning("writeOptimizerState: ignoring missing %s %s", what, name)


def _knows(names: Mapping[int, str], optimizer: torch.optim.Optimizer) -> bool:
    return all(id(parameter) in names for group in optimizer.param_groups for parameter in group["params"])


def _outdated_values(optimizer: torch.optim.Optimizer) -> Any:
    """The values of an optimizer's state, unless they were just loaded and no setting has changed since."""
    if not isinstance(optimizer, Optimizer) or optimizer.is_as_loaded:
        return None
    return optimizer.get_state_dict()["ipu_param"]


def _device_state(executor: Executor) -> Mapping[str, Any]:
    logger.info("Writing optimiser state tensors from IPU to host.")
    with executor.turn:
        plan, state = executor.plan, executor.whole_optimizer_state()
    assert plan is not None
    assert state is not None
    named = to_ipu_state(plan, state)
    if plan.automatic_loss_scaling:
        named[_LOSS_SCALE] = torch.tensor(state.loss_scale, dtype=torch.float32)
    return {"ipu_state": named, "ipu_param": to_ipu_param(plan)}
