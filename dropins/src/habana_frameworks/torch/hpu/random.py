"""Random numbers on the card: those of the device underneath, so that a script draws the same with and without it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from habana_frameworks._emulation import underneath
from habana_frameworks.torch.hpu.places import Device, check_device


def manual_seed(seed: int) -> None:
    """Seed the card's generator."""
    underneath.generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all cards."""
    manual_seed(seed)


def seed() -> int:
    """Seed the card's generator by chance and return the seed."""
    return underneath.generator().seed()


def seed_all() -> int:
    """Seed the generators of all cards by chance."""
    return seed()


def initial_seed() -> int:
    """Return the seed of the card's generator."""
    return underneath.generator().initial_seed()


def get_rng_state(device: Device = "hpu") -> Tensor:
    """Return the state of the card's generator."""
    check_device(device)
    return underneath.generator().get_state()


def set_rng_state(new_state: Tensor, device: Device = "hpu") -> None:
    """Put the card's generator into a state."""
    check_device(device)
    underneath.generator().set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Return the states of all cards' generators."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Put the generators of all cards into states."""
    (state,) = new_states
    set_rng_state(state)
