"""Copying weights and buffers between the module of a wrapped model and the device."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from torch import nn

from pilotage.engine import Executor
from poptorch._errors import createPoptorchError, translated
from poptorch._executor.counted_copies import ReplaceableCopy
from poptorch._logging import logger
from poptorch.options import Options

__all__ = ["WeightCopies", "implicit_copy"]


class WeightCopies:
    """Methods of an executor that copy weights and buffers."""

    engine: Executor
    _user_model: nn.Module
    _options: Options
    _caller: int | None
    """The thread of the last call."""

    @ReplaceableCopy
    def copyWeightsToHost(self) -> None:
        """Copy the device's weights and buffers to the module."""
        with translated():
            self.engine.fetch_weights()

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Copy the device's weights to the module if they are newer; returns whether they were."""
        return self.engine.weights.fetch_if_needed()

    def copyWeightsToDevice(self) -> None:
        """Copy the module's weights and buffers to the device, even if the device has trained them since."""
        with translated(), self.engine.turn:
            if self.engine.is_attached and self.engine.weights.forget_newer():
                logger.warning(
                    "copyWeightsToDevice() replaces weights that the device has trained by those that the module had "
                    "before, because nothing has read them since. Call copyWeightsToHost() first to keep them."
                )
            self.engine.send_weights()

    def copyNamedBuffersToDevice(self) -> None:
        """Copy the buffers that ``updatableNamedBuffers`` names to the device."""
        names = self._updatable_buffers()
        if not names:
            raise createPoptorchError("No buffers are named by poptorch.Options().updatableNamedBuffers.")
        with translated():
            self.engine.send_buffers(names)

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> Any:
        """Load weights into the module, and onto the device if it is attached."""
        with self.engine.turn:
            result = self._user_model.load_state_dict(state_dict, strict)
            if self.engine.is_attached:
                self.engine.send_weights()
        return result

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The module's state dictionary between two calls; a copy if another thread trains the model."""
        with self.engine.turn:
            state: dict[str, Any] = self._user_model.state_dict(*args, **kwargs)
            return state if self._caller in (None, get_ident()) else copy.deepcopy(state)

    def _updatable_buffers(self) -> list[str]:
        return list(self._options._Popart.settings.updatable_buffers)


def implicit_copy(model: weakref.ref[WeightCopies]) -> Callable[[], None]:
    """Calls a model's own `copyWeightsToHost` when reading weights copies them.

    Only if the user has replaced the method on the model, to count the copies for instance.
    """

    def copy_weights() -> None:
        executor = model()
        if executor is not None and "copyWeightsToHost" in vars(executor):
            executor.copyWeightsToHost()

    return copy_weights
