"""An optimizer's own step() as an update rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from pilotage.errors import OptionError, PilotageError
from pilotage.optim.own_step.stepper import State, Stepper
from pilotage.optim.rule import Value
from pilotage.optim.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One entry of an optimizer's state, as a slot."""

    shape: tuple[int, ...] | None
    """None is the shape of the parameter."""

    dtype: torch.dtype
    fill: float
    """Its value before the first update."""

    number: str | None
    """``int`` or ``float`` if the optimizer keeps a number of Python."""


@dataclass(frozen=True, kw_only=True)
class OwnStepRule:
    """The step() of an optimizer's class, run on the tensors of a program while it is captured."""

    description: str
    """The optimizer, its settings and its state, as JSON: rules with the same text are equal, and files store it."""

    stepper: Stepper | None = field(default=None, compare=False, repr=False)
    """Runs step(); a stored rule has none, because its program has been captured."""

    @property
    def kind(self) -> str:
        """The optimizer by name."""
        return str(_read(self.description)["kind"])

    @property
    def maximize(self) -> bool:
        """False: step() itself looks at that setting."""
        return False

    @property
    def slots(self) -> tuple[str, ...]:
        """The entries of a parameter's state."""
        return tuple(_read(self.description)["slots"])

    def entry(self, slot: str, parameter: Tensor) -> StateEntry:
        """The form of a slot of a parameter."""
        key = shape_key(parameter)
        try:
            shape, dtype, fill, number = _read(self.description)["entries"][key][slot]
        except KeyError:
            raise OptionError(f"{self.kind} has no state {slot!r} for a parameter of the form {key}.") from None
        kind = getattr(torch, dtype)
        assert isinstance(kind, torch.dtype)
        return StateEntry(None if shape is None else tuple(shape), kind, float(fill), number)

    def initial(self, slot: str, parameter: Tensor) -> Tensor:
        """The value of a slot before the first update."""
        entry = self.entry(slot, parameter)
        if entry.shape is None:
            return torch.full_like(parameter, entry.fill, dtype=entry.dtype, requires_grad=False)
        return torch.full(entry.shape, entry.fill, dtype=entry.dtype, device=parameter.device)

    def apply(self, work: Workspace, step: Tensor, values: Mapping[str, Value]) -> None:
        """Update parameters and slots in place."""
        assert self.stepper is not None
        states = [
            {slot: _exact(tensors[number]) for slot, tensors in work.slots.items()}
            for number in range(len(work.parameters))
        ]
        try:
            self.stepper.run(work.parameters, work.gradients, states, values, captures=True)
        except PilotageError:
            raise
        except Exception as error:
            raise refusal(self.stepper, error) from error
        self._store(work, states)

    def _store(self, work: Workspace, states: Sequence[State]) -> None:
        for slot, tensors in work.slots.items():
            for number, tensor in enumerate(tensors):
                new = states[number][slot]
                if new is not tensor:
                    tensor.copy_(torch.as_tensor(new))

    def in_eager(
        self,
        parameter: Tensor,
        gradient: Tensor,
        slots: Mapping[str, Tensor],
        values: Mapping[str, float],
        *,
        is_first: bool,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """One update by the optimizer as it is in eager PyTorch; the first one starts from an empty state."""
        assert self.stepper is not None
        new = parameter.detach().clone()
        begins_empty = is_first and not _read(self.description)["given"]
        state: State = {} if begins_empty else {slot: self._kept(slot, new, slots[slot]) for slot in self.slots}
        self.stepper.run([new], [gradient.to(new.dtype, copy=True)], [state], values, captures=False)
        return new, {slot: torch.as_tensor(state[slot]).to(slots[slot]) for slot in self.slots if slot in state}

    def _kept(self, slot: str, parameter: Tensor, tensor: Tensor) -> Any:
        entry = self.entry(slot, parameter)
        if entry.number is not None:
            return int(tensor) if entry.number == "int" else float(tensor)
        is_wider = tensor.dim() > 0 and tensor.is_floating_point() and parameter.dtype == torch.float64
        return tensor.detach().to(
            "cpu" if tensor.dim() == 0 else parameter.device, parameter.dtype if is_wider else tensor.dtype, copy=True
        )

    def as_torch_keeps(self, slot: str, parameter: Tensor, tensor: Tensor) -> Any:
        """A slot as it is in ``optimizer.state``."""
        number = self.entry(slot, parameter).number
        if number is None:
            return tensor
        return int(tensor) if number == "int" else float(tensor)


def shape_key(parameter: Tensor) -> str:
    """How a description names parameters of one form."""
    return f"{'x'.join(map(str, parameter.shape))} {str(parameter.dtype).removeprefix('torch.')}"


def refusal(stepper: Stepper, error: Exception) -> OptionError:
    """The error for a step() that cannot be captured, with its line."""
    where, trace = "", error.__traceback__
    home = __name__.rpartition(".")[0]
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if not name.startswith((home, "torch._", "torch.fx", "torch.utils", "torch.overrides", "pilotage.")):
            where = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return OptionError(
        f"{stepper.kind} cannot become part of a program: its step(){where} needs numbers that are known only while "
        f"the program runs, or does what cannot be captured ({type(error).__name__}). Use an optimizer of torch.optim, "
        "or compute with tensors there: torch.where instead of if, and no .tolist() or float()."
    )


def _exact(tensor: Tensor) -> Tensor:
    """Counts and the like in float64, in which torch computes with numbers of Python."""
    return tensor.to(torch.float64) if tensor.dim() == 0 and tensor.is_floating_point() else tensor


@lru_cache(maxsize=64)
def _read(description: str) -> Any:
    return json.loads(description)
