"""Handing an optimizer over to a compiled model."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pilotage.engine import Lamb, OptimizerPlan, read_optimizer
from poptorch._errors import require
from poptorch._logging import logger
from poptorch._optimizer_attributes import AttributeTracker
from poptorch.optim.adam import Adam, AdamW
from poptorch.optim.lamb import LAMB
from poptorch.optim.refining import check_settings, refinements_of
from poptorch.optim.rmsprop import RMSprop
from poptorch.optim.sgd import SGD

__all__ = ["OptimizerReader", "kind_of"]

_KNOWN = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
    SGD,
    Adam,
    AdamW,
    RMSprop,
    LAMB,
    Lamb,
)


class OptimizerReader:
    """Reads the optimizers of one model, and warns of attributes that it ignores."""

    def __init__(self, *, relaxed: bool = False, automatic_loss_scaling: bool = False) -> None:
        self._tracker = AttributeTracker()
        self._say = logger.debug if relaxed else logger.warning
        self._automatic_loss_scaling = automatic_loss_scaling
        self._warned: set[type] = set()

    def plan(
        self, optimizer: torch.optim.Optimizer, names: Mapping[int, str], *, compiled: OptimizerPlan | None = None
    ) -> OptimizerPlan:
        """The plan of an optimizer over the parameters that ``names`` knows, by ``id``.

        With the plan that the model was compiled for, its division into constants and variables is kept.
        """
        kind = kind_of(optimizer)
        self._warn_of_python_code(optimizer)
        self._tracker.report(optimizer, kind, self._say)
        check_settings(optimizer)
        refinements = refinements_of(optimizer, automatic_loss_scaling=self._automatic_loss_scaling)
        held = any(id(parameter) in names for group in optimizer.param_groups for parameter in group["params"])
        return read_optimizer(optimizer, names, refinements=refinements, like=compiled, may_be_empty=held)

    def _warn_of_python_code(self, optimizer: torch.optim.Optimizer) -> None:
        own = type(optimizer)
        if own not in _KNOWN and own not in self._warned:
            self._warned.add(own)
            logger.warning(
                "%s is derived from another optimizer. Poptorch does not run Python optimizer code directly: "
                "parameters are updated as by %s.",
                own.__name__,
                next(base.__name__ for base in own.__mro__ if base in _KNOWN),
            )


def kind_of(optimizer: torch.optim.Optimizer) -> str:
    """The name of an optimizer in PopTorch's messages."""
    require(
        isinstance(optimizer, _KNOWN),
        f"Unsupported optimizer type {type(optimizer).__name__}. Types supported are SGD, Adam, AdamW and RMSprop of "
        "torch.optim or poptorch.optim, and poptorch.optim.LAMB.",
    )
    no_bias = "" if getattr(optimizer, "bias_correction", True) else "_NO_BIAS"
    match optimizer:
        case torch.optim.SGD():
            return "SGD1" if getattr(optimizer, "use_combined_accum", False) else "SGD2"
        case torch.optim.AdamW():
            return f"ADAMW{no_bias}"
        case torch.optim.Adam():
            return "ADAM"
        case torch.optim.RMSprop():
            return "RMSPROP_CENTERED" if optimizer.param_groups[0]["centered"] else "RMSPROP"
        case _:
            return f"LAMB{no_bias}"
