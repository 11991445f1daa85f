"""The same weights, buffers and optimizer state in all instances, before they train together."""

from __future__ import annotations

from pilotage.backends.state import DeviceState
from pilotage.distributed.agreement import settle_weights
from pilotage.distributed.peers import Peers


def settle(peers: Peers, state: DeviceState) -> str | None:
    """Take the state of instance 0 wherever instances differ; returns what is to be said about it."""
    slots = {f"{slot.name} of {slot.parameter}": tensor for slot, tensor in state.slots.items()}
    counters = {counter.value: tensor for counter, tensor in state.counters.items()}
    unequal = settle_weights(peers, {**state.parameters, **state.buffers(), **slots, **counters})
    if not unequal:
        return None
    state.load_buffers(state.buffers())
    return (
        f"The instances would have begun with different values of {len(unequal)} tensors, {unequal[0]} among them; all of them "
        "begin with those of instance 0. Seed torch in the same way everywhere, or load the same checkpoint."
    )
