"""Warns of changes of the module that PopTorch does not apply."""

from __future__ import annotations

from operator import attrgetter

from torch import nn

from pilotage.engine import Executor
from poptorch._logging import logger

__all__ = ["HostChanges"]

_MODE = attrgetter("training")
_AT_A_TIME = 8
"""How many parts of the module each call looks at, so that the cost does not grow with the model."""


class HostChanges:
    """Warns once of weights that were edited on the host, and once of modes that were set on the module.

    PopTorch copies weights to the device in `copyWeightsToDevice` and `load_state_dict` of the wrapped model, and takes
    the modes that the module has when it is compiled. Scripts put a module in training mode beside an inference model
    of it in order to train it, so that is not reported.
    """

    def __init__(self, module: nn.Module, *, trains: bool) -> None:
        self._module = module
        self._trains = trains
        self._parts: list[nn.Module] = []
        self._modes: list[bool] = []
        self._next = 0
        self._said_edits = self._said_modes = False

    def begin(self) -> None:
        """Note the modes that the module has when it is compiled."""
        self._parts = list(self._module.modules())
        self._modes = list(map(_MODE, self._parts))

    def check(self, engine: Executor) -> None:
        """Look for changes; called before every run but the first."""
        trained = engine.weights.trained
        may_be_edited = trained is None or not trained.is_untouched
        if may_be_edited and not self._said_edits and (edited := engine.weights.unsent_edits()):
            self._on_edits(edited, engine)
        if not self._said_modes:
            start = self._next if self._next < len(self._parts) else 0
            self._next = stop = start + _AT_A_TIME
            if list(map(_MODE, self._parts[start:stop])) != self._modes[start:stop]:
                self._on_modes()

    def _on_edits(self, edited: list[str], engine: Executor) -> None:
        if engine.host_steps.noted:
            # The optimizer that has changed them on the host is reported instead.
            return
        self._said_edits = True
        more = f" (and {len(edited) - 1} more)" if len(edited) > 1 else ""
        logger.warning(
            "%s%s was changed on the host after it was copied to the device, and this call does not use the change. "
            "Call copyWeightsToDevice() on the wrapped model after changing weights, or load them with its "
            "load_state_dict().",
            edited[0],
            more,
        )

    def _on_modes(self) -> None:
        changed = [part for part, mode in zip(self._parts, self._modes, strict=True) if part.training != mode]
        changed = [part for part in changed if self._trains or not part.training]
        if not changed:
            return
        self._said_modes = True
        names = {part: name for name, part in self._module.named_modules()}
        name = names.get(changed[0]) or type(changed[0]).__name__
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        logger.warning(
            "%s%s was put in %s mode after the model was compiled, which has no effect on the compiled model. Call "
            "train() or eval() on the wrapped model instead of the module, or destroy() the wrapped model first.",
            name,
            more,
            "training" if changed[0].training else "evaluation",
        )
