"""The wrapped model: a module that runs as a compiled program."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pilotage.events import Event
from pilotage.logs import log_event
from pilotage.optim.rule import OptimizerPlan
from pilotage.program.structure import put_together
from pilotage.runtime.executor import Executor
from pilotage.runtime.guards import NeverLost, refuse_backward
from poptorch._errors import createPoptorchError, translated
from poptorch._execution import execution_of, resolved
from poptorch._logging import logger
from poptorch._progress import ProgressBar
from poptorch._types_on_device import as_device_input, as_device_output
from poptorch.enums import ConnectionType
from poptorch.optim.handover import OptimizerReader
from poptorch.options import Options

__all__ = ["PoplarExecutor"]


class PoplarExecutor(NeverLost):
    """What `trainingModel` and `inferenceModel` return; called like the module that it wraps."""

    def __init__(
        self,
        model: nn.Module,
        options: Options,
        *,
        training: bool,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        self._user_model = model
        self.destroyed = False
        """Whether the module may be wrapped for training again."""
        self._training = training
        self._optimizer = optimizer
        self._options = resolved(options, training=training)
        self._options._freeze()
        self._optimizers = OptimizerReader(relaxed=self._options._relax_optimizer_checks)
        self._bar = ProgressBar() if self._options._show_compilation_progress_bar else None
        self._executor = Executor(
            model,
            execution=execution_of(options, training=training),
            plan=self._plan_of(optimizer) if optimizer is not None else None,
            listeners=[log_event, self._show_progress],
            adapt=as_device_input,
        )

    # Running and compiling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on a batch; a training model is also updated."""
        self._refuse_offline()
        with translated():
            outputs = self._executor.run(self._executor.bind(*args, **kwargs))
            structure = self._executor.output_structure
        return put_together(structure, map(_as_output, outputs))

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for calls like this one, without running."""
        if self.isCompiled():
            logger.warning("A call to compile is ignored: the model is compiled already.")
            return
        with translated():
            self._executor.compile(*args, **kwargs)

    def isCompiled(self) -> bool:
        """Whether the model is compiled."""
        return self._executor.is_compiled

    def destroy(self) -> None:
        """Bring the weights home and give up the program; the module can be wrapped again."""
        self._executor.destroy()
        self.destroyed = True

    # Device

    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its device."""
        return self._executor.is_attached

    def attachToDevice(self) -> None:
        """Take the device again after `detachFromDevice`."""
        self._refuse_offline()
        with translated():
            self._executor.attach()

    def detachFromDevice(self) -> None:
        """Bring weights and optimizer state home, and free the device."""
        with translated():
            self._executor.detach()

    # Weights

    def copyWeightsToHost(self) -> None:
        """Bring the device's weights and buffers to the module."""
        with translated():
            self._executor.fetch_weights()

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Bring the device's weights to the module if they are newer; tells whether they were."""
        return self._executor.fetch_weights_if_needed()

    def copyWeightsToDevice(self) -> None:
        """Send the module's weights and buffers to the device."""
        with translated():
            self._executor.send_weights()

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> Any:
        """Load weights into the module, and onto the device if it is attached."""
        result = self._user_model.load_state_dict(state_dict, strict)
        if self._executor.is_attached:
            self._executor.send_weights()
        return result

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Take over the optimizer's present values."""
        if not self._training:
            raise createPoptorchError("An inference model has no optimizer. Use poptorch.trainingModel.")
        self._executor.set_plan(self._plan_of(optimizer, self._executor.plan if self.isCompiled() else None))
        self._optimizer = optimizer

    # The wrapped module

    @property
    def model(self) -> nn.Module:
        """The module that is wrapped."""
        return self._user_model

    @property
    def options(self) -> Options:
        """The model's own options, with every open choice made."""
        return self._options

    def __getattr__(self, name: str) -> Any:
        """Whatever is not found here is looked up in the module."""
        if name.startswith("__") or "_user_model" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._user_model, name)

    def __repr__(self) -> str:
        return repr(self._user_model)

    # Inside

    def _plan_of(self, optimizer: torch.optim.Optimizer, compiled: OptimizerPlan | None = None) -> OptimizerPlan:
        names = {id(parameter): name for name, parameter in self._user_model.named_parameters()}
        return self._optimizers.plan(optimizer, names, compiled=compiled)

    def _refuse_offline(self) -> None:
        if self._options.connection_type == ConnectionType.Never:
            raise AssertionError("Trying to run a model on an offline device (ConnectionType.Never).")

    def _show_progress(self, event: Event) -> None:
        if self._bar is not None:
            self._bar(event)


def _as_output(tensor: Tensor) -> Tensor:
    output = as_device_output(tensor)
    output.backward = _refused_backward  # type: ignore[method-assign]
    return output


@translated()
def _refused_backward(*args: Any, **kwargs: Any) -> None:
    refuse_backward()
