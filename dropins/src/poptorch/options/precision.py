"""Options of number formats."""

from __future__ import annotations

from typing import Self

import torch

from poptorch._errors import require
from poptorch._logging import logger
from poptorch._options_impl import OptionsDict
from poptorch.enums import HalfFloatCastingBehavior
from poptorch.options.popart import _PopartOptions

_PARTIALS = {torch.float32: "float", torch.float16: "half"}


class _PrecisionOptions(OptionsDict):
    """How numbers are rounded, accumulated and watched."""

    def __init__(self, popart: _PopartOptions) -> None:
        self._popart = popart
        super().__init__()

    def halfFloatCasting(self, half_float_casting: HalfFloatCastingBehavior) -> Self:
        """Deprecated: half and float mix as in PyTorch."""
        logger.warning("poptorch.Options().Precision.halfFloatCasting is deprecated and has no effect.")
        return self

    def runningStatisticsAlwaysFloat(self, value: bool) -> Self:
        """Deprecated: running statistics keep the module's type."""
        if not isinstance(value, bool):
            raise ValueError(f"runningStatisticsAlwaysFloat takes True or False, not {value!r}.")
        logger.warning("poptorch.Options().Precision.runningStatisticsAlwaysFloat is deprecated and has no effect.")
        return self

    def enableFloatingPointExceptions(self, enabled: bool) -> Self:
        """Raise an error if an operation produces NaN or infinity."""
        require(isinstance(enabled, bool), f"enableFloatingPointExceptions takes True or False, not {enabled!r}.")
        self._popart.set("enableFloatingPointChecks", enabled)
        return self

    def enableStochasticRounding(self, enabled: bool) -> Self:
        """Round half-precision results up or down at random, in proportion to their distance."""
        require(isinstance(enabled, bool), f"enableStochasticRounding takes True or False, not {enabled!r}.")
        self._popart.set("enableStochasticRounding", enabled)
        return self

    def setPartialsType(self, dtype: torch.dtype) -> Self:
        """The type in which matrix products and convolutions accumulate: torch.float or torch.half."""
        if dtype not in _PARTIALS:
            raise ValueError(f"Invalid partials type {dtype!r}. Choose torch.float or torch.half.")
        self._popart.set("partialsTypeMatMuls", _PARTIALS[dtype])
        self._popart.merge("convolutionOptions", {"partialsType": _PARTIALS[dtype]})
        return self
