"""The state of a program before a step, to begin the reference with and to return to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from pilotage.arrival.reference import Outcome, Start
from pilotage.execution.random_streams import RandomStreams
from pilotage.execution.spread_state import ProgramState
from pilotage.program.layout import Counter, Slot

_Key = TypeVar("_Key")


class Snapshot:
    """A copy of a program's state on the host."""

    @torch.no_grad()
    def __init__(self, state: ProgramState, streams: RandomStreams) -> None:
        self._state = state
        self._streams = streams
        self._random = streams.states
        self._copies = [(tensor, tensor.to("cpu", copy=True)) for tensor in state.everything()]
        copies = {id(tensor): copy for tensor, copy in self._copies}
        self._slots: Mapping[Slot, Tensor] = {slot: copies[id(tensor)] for slot, tensor in state.slots.items()}
        self._buffers = {
            replica: {name: copies[id(tensor)] for name, tensor in state.buffers(replica).items()}
            for replica in state.replicas
        }

    def start(self, module: nn.Module, *, trains: bool, on_device: Mapping[str, Tensor] | None = None) -> Start:
        """What the step begins with: the weights of the user's module on the host, or those of the devices if given.

        Instances may have equal weights only on their devices. ``on_device`` has the weights of all stages: eager
        PyTorch needs them all, and the state of this process may be that of one stage.
        """
        # Copies: weights that something else refers to are copied back from the device at once.
        parameters = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
        own = {name: buffer.detach().clone() for name, buffer in module.named_buffers()}
        if on_device is not None:
            copies = {name: tensor.detach().clone() for name, tensor in on_device.items()}
            parameters |= {name: copies[name] for name in parameters if name in copies}
            own |= {name: copies[name] for name in own if name in copies}
        return Start(
            parameters=parameters,
            buffers={replica: own if replica == 0 else {**own, **held} for replica, held in self._buffers.items()},
            slots=self._slots,
            random=self._random,
            trainable=frozenset(name for name, parameter in module.named_parameters() if parameter.requires_grad),
            updates=float(self._state.counters[Counter.UPDATES]) if trains else 0.0,
        )

    @torch.no_grad()
    def restore(self) -> None:
        """Put everything back as it was."""
        for tensor, copy in self._copies:
            tensor.copy_(copy)
        self._state.forget_gradients()
        self._state.updates_of_call = 0
        self.restore_random_numbers()

    def restore_random_numbers(self) -> None:
        """Draw again from where the step began."""
        self._streams.states = self._random


@torch.no_grad()
def outcome_of(state: ProgramState, outputs: list[Tensor], *, trains: bool) -> Outcome:
    """What a program has computed, on its devices: the state's own tensors, which the next step changes."""
    return Outcome(
        outputs=outputs,
        parameters=dict(state.parameters) if trains else {},
        buffers={replica: dict(state.buffers(replica)) for replica in state.replicas},
        slots=dict(state.slots) if trains else {},
    )


@torch.no_grad()
def copied(outcome: Outcome) -> Outcome:
    """An outcome that outlasts the next step."""
    return Outcome(
        outputs=[tensor.clone() for tensor in outcome.outputs],
        parameters=_copies(outcome.parameters),
        buffers={replica: _copies(buffers) for replica, buffers in outcome.buffers.items()},
        slots=_copies(outcome.slots),
    )


def _copies(tensors: Mapping[_Key, Tensor]) -> dict[_Key, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}
