"""torch.compile with Inductor, which generates no code for the card."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from torch import Tensor

from pilotage.engine import InductorWrapper


@cache
def refuse_inductor() -> None:
    """Make torch.compile(backend="inductor"), the default, name the card's backend for tensors on the card."""
    original = InductorWrapper.__call__

    def checked(self: Any, model: Any, inputs: Sequence[Any]) -> Any:
        if any(isinstance(each, Tensor) and each.device.type == "hpu" for each in (*inputs, *_attributes(model))):
            raise RuntimeError(
                "Inductor, the default backend of torch.compile, generates no code for Gaudi. Use torch.compile(..., "
                'backend="hpu_backend") for tensors on hpu.'
            )
        return original(self, model, inputs)

    InductorWrapper.__call__ = checked


def _attributes(model: Any) -> Sequence[Any]:
    return [*model.parameters(), *model.buffers()] if hasattr(model, "parameters") else []
