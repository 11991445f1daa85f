"""Random numbers on the card: they are the host's, so that a script draws the same with and without it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from habana_frameworks.torch.hpu.places import Device, check_device


def manual_seed(seed: int) -> None:
    """Seed the card's generator."""
    torch.default_generator.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all cards."""
    manual_seed(seed)


def seed() -> int:
    """Seed the card's generator by chance and return the seed."""
    return torch.default_generator.seed()


def seed_all() -> int:
    """Seed the generators of all cards by chance."""
    return seed()


def initial_seed() -> int:
    """Return the seed of the card's generator."""
    return torch.default_generator.initial_seed()


def get_rng_state(device: Device = "hpu") -> Tensor:
    """Return the state of the card's generator."""
    check_device(device)
    return torch.default_generator.get_state()


def set_rng_state(new_state: Tensor, device: Device = "hpu") -> None:
    """Put the card's generator into a state."""
    check_device(device)
    torch.default_generator.set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Return the states of all cards' generators."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Put the generators of all cards into states."""
    (state,) = new_states
    set_rng_state(state)
