"""The moments of an optimizer, stored in a type of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

MomentType = torch.dtype | None
"""The type of a moment; None takes that of the parameter."""

_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)


class Moment:
    """One moment of each parameter, under its name in the state; float8 values have a scale beside them."""

    def __init__(self, name: str, dtype: MomentType) -> None:
        if dtype is not None and not dtype.is_floating_point:
            raise ValueError(f"moments_dtype is {dtype}. It must be a floating-point type, or None.")
        self._name, self._dtype = name, dtype

    def read(self, state: dict[str, Any], parameter: Tensor) -> Tensor:
        """Return the moment to compute with: the stored one itself, or a float32 copy of it."""
        if self._name not in state:
            state[self._name] = torch.zeros_like(parameter, dtype=self._dtype or parameter.dtype)
            if self._dtype in _FLOAT8:
                state[f"{self._name}_scale"] = torch.ones((), device=parameter.device)
        stored: Tensor = state[self._name]
        if self._dtype is None:
            return stored
        wide = stored.to(torch.float32)
        return wide * state[f"{self._name}_scale"] if self._dtype in _FLOAT8 else wide.clone()

    def write(self, state: dict[str, Any], value: Tensor) -> None:
        """Store the moment; nothing is to be done for one that was changed in place."""
        if self._dtype is None:
            return
        if self._dtype in _FLOAT8:
            largest = value.abs().max()
            scale = torch.where(largest > 0, largest / torch.finfo(self._dtype).max, torch.ones_like(largest))
            state[f"{self._name}_scale"].copy_(scale)
            value = value / scale
        state[self._name].copy_(value.to(self._dtype))
