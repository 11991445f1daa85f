"""Random numbers on the card, which are those of the computing device."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Generator, Tensor

from habana_frameworks._emulation import computing_device
from habana_frameworks.torch.hpu.device_argument import Device, check_device


def manual_seed(seed: int) -> Generator:
    """Seed the card's generator and return it."""
    return computing_device.generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all cards."""
    manual_seed(seed)


def seed() -> int:
    """Seed the card's generator randomly and return the seed."""
    return computing_device.generator().seed()


def seed_all() -> None:
    """Seed the generators of all cards randomly."""
    seed()


def initial_seed() -> int:
    """Return the seed of the card's generator."""
    return computing_device.generator().initial_seed()


def get_rng_state(device: Device = "hpu") -> Tensor:
    """Return the state of the card's generator."""
    check_device(device)
    return computing_device.generator().get_state()


def set_rng_state(new_state: Tensor, device: Device = "hpu") -> None:
    """Set the state of the card's generator."""
    check_device(device)
    computing_device.generator().set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Return the states of all cards' generators."""
    return [get_rng_state()]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Set the states of all cards' generators."""
    (state,) = new_states
    set_rng_state(state)


def __getattr__(name: str) -> object:
    # Created late: CUDA's generators exist only after its initialisation.
    if name == "default_generators":
        return [computing_device.generator()]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
