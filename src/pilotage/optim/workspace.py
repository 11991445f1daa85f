"""The tensors of one update, in the types of its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from pilotage.torch_private import foreach_neg


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Parameters, gradients and slots of one update.

    Arithmetic runs in the widest type of a parameter, its gradient and its slots, so that a slot may have fewer or
    more bits than its parameter. Nothing is copied if all types agree.
    """

    parameters: list[Tensor]
    """Updated in place, in their own types."""

    gradients: list[Tensor]
    """The direction of ascent, in the types of the arithmetic."""

    slots: Mapping[str, list[Tensor]]
    """Updated in place, in the types of the arithmetic; :meth:`store` makes a change permanent."""

    stored: Mapping[str, list[Tensor]]
    """The slots as stored between updates."""

    def store(self, slot: str) -> None:
        """Store a slot's new value, and continue with the value as rounded by the stored type."""
        for kept, current in zip(self.stored[slot], self.slots[slot], strict=True):
            if kept is not current:
                kept.copy_(current)
                current.copy_(kept)


def open_workspace(
    parameters: Sequence[Tensor], gradients: Sequence[Tensor], slots: Mapping[str, Sequence[Tensor]], *, maximize: bool
) -> Workspace:
    """Cast the tensors of an update to the types of its arithmetic; ``maximize`` negates the gradients."""
    parameters = _real_views(parameters)
    gradients = _real_views(gradients)
    stored = {name: _real_views(tensors) for name, tensors in slots.items()}
    types = [
        reduce(torch.promote_types, [tensor.dtype for tensor in related])
        for related in zip(parameters, gradients, *stored.values(), strict=True)
    ]
    gradients = _cast(gradients, types)
    return Workspace(
        parameters=parameters,
        gradients=list(foreach_neg(gradients)) if maximize else gradients,
        slots={name: _cast(tensors, types) for name, tensors in stored.items()},
        stored=stored,
    )


def plain_workspace(
    parameters: Sequence[Tensor], gradients: Sequence[Tensor], slots: Mapping[str, Sequence[Tensor]]
) -> Workspace:
    """The tensors of an update as they are, for an optimizer that chooses the types of its arithmetic itself."""
    kept = {name: list(tensors) for name, tensors in slots.items()}
    return Workspace(parameters=list(parameters), gradients=list(gradients), slots=kept, stored=kept)


def empty_slot(parameter: Tensor, dtype: torch.dtype | None, *, fill: float = 0.0) -> Tensor:
    """A slot with the layout of a parameter; ``dtype`` None is the parameter's type."""
    return torch.full_like(parameter, fill, dtype=dtype, requires_grad=False)


def _real_views(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [torch.view_as_real(tensor) if tensor.is_complex() else tensor for tensor in tensors]


def _cast(tensors: Sequence[Tensor], types: Sequence[torch.dtype]) -> list[Tensor]:
    return [t if t.dtype == dtype else t.to(dtype) for t, dtype in zip(tensors, types, strict=True)]
