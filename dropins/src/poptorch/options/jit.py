"""Options of a tracing front end that PopTorch no longer has."""

from __future__ import annotations

from typing import Self

from poptorch._logging import logger
from poptorch._options_impl import OptionsDict


class _JitOptions(OptionsDict):
    """How the model is turned into a graph."""

    def traceModel(self, trace_model: bool) -> Self:
        """Deprecated: models are always captured by dispatching their operations."""
        logger.warning("poptorch.Options().Jit.traceModel is deprecated and has no effect.")
        if trace_model:
            raise ValueError("Tracing with torch.jit is no longer supported. Remove poptorch.Options().Jit.traceModel.")
        return self
