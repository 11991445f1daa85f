"""Convolutions that an IPU computes together."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import torch

from poptorch._capture.capturing import current_run
from poptorch._errors import require
from poptorch.enums import MultiConvPlanType

_PARTIALS = (torch.float, torch.half)


class MultiConv:
    """The convolutions of a ``with`` block, which an IPU plans together; the results do not change."""

    def __init__(self) -> None:
        self._available_memory_proportions: tuple[float, ...] | None = None
        self._partials_types: tuple[torch.dtype, ...] | None = None
        self._enable_conv_dithering: tuple[bool, ...] | None = None
        self._plan_type: MultiConvPlanType | None = None
        self._per_conv_reserved_tiles: int | None = None
        self._cycle_back_off: float | None = None

    def availableMemoryProportions(self, value: float | Sequence[float]) -> Self:
        """The share of memory for all convolutions, or for each."""
        values = _each(value)
        if not all(isinstance(each, float) for each in values):
            raise ValueError(f"Invalid available memory proportions: {value!r}. Give a float or a list of floats.")
        self._available_memory_proportions = values
        return self

    def partialsTypes(self, value: torch.dtype | Sequence[torch.dtype]) -> Self:
        """The type of partial sums of all convolutions, or of each."""
        values = _each(value)
        if not all(each in _PARTIALS for each in values):
            raise ValueError(f"Invalid partials types: {value!r}. Give torch.float or torch.half, or a list of them.")
        self._partials_types = values
        return self

    def enableConvDithering(self, value: bool | Sequence[bool]) -> Self:
        """Whether to dither all convolutions, or each."""
        values = _each(value)
        if not all(isinstance(each, bool) for each in values):
            raise ValueError(f"Invalid value for convolution dithering: {value!r}. Give a bool or a list of bools.")
        self._enable_conv_dithering = values
        return self

    def planType(self, value: MultiConvPlanType) -> Self:
        """Whether to run the convolutions in parallel or one after another."""
        require(
            isinstance(value, MultiConvPlanType), f"Invalid plan type: {value!r} is not a poptorch.MultiConvPlanType."
        )
        self._plan_type = value
        return self

    def perConvReservedTiles(self, value: int) -> Self:
        """Tiles to reserve for each convolution."""
        require(isinstance(value, int), f"perConvReservedTiles takes a whole number, not {value!r}.")
        self._per_conv_reserved_tiles = value
        return self

    def cycleBackOff(self, value: float) -> Self:
        """How many cycles to trade for a plan that needs less memory."""
        require(isinstance(value, float), f"cycleBackOff takes a float, not {value!r}.")
        self._cycle_back_off = value
        return self

    def __enter__(self) -> Self:
        run = current_run()
        if run is not None:
            run.begin_multi_conv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = current_run()
        if run is not None:
            run.end_multi_conv(failed=error is not None)


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
