"""The same weights, buffers and optimizer state in all instances and stages, before they train together."""

from __future__ import annotations

from torch import nn

from pilotage.backends.state import DeviceState
from pilotage.distributed.agreement import settle_weights
from pilotage.distributed.line import Line
from pilotage.distributed.peers import Peers


def settle(peers: Peers, state: DeviceState) -> str | None:
    """Take the state of instance 0 wherever instances differ; returns what is to be said about it."""
    # What is shared out, no other instance has.
    own = {} if state.shares is not None else state.slots
    slots = {f"{slot.name} of {slot.parameter}": tensor for slot, tensor in own.items()}
    counters = {counter.value: tensor for counter, tensor in state.counters.items()}
    unequal = settle_weights(peers, {**state.parameters, **state.buffers(), **slots, **counters})
    if not unequal:
        return None
    state.load_buffers(state.buffers())
    return _notice("instances", unequal)


def settle_stages(line: Line, module: nn.Module) -> str | None:
    """Take the weights of the first stage's module wherever those of other stages' differ; returns what is to be said."""
    unequal = settle_weights(line, {**dict(module.named_parameters()), **dict(module.named_buffers())})
    return _notice("stages", unequal) if unequal else None


def _notice(which: str, unequal: list[str]) -> str:
    return (
        f"The {which} would have begun with different values of {len(unequal)} tensors, {unequal[0]} among them; all of them "
        f"begin with those of {which.removesuffix('s')} 0. Seed torch in the same way everywhere, or load the same checkpoint."
    )
