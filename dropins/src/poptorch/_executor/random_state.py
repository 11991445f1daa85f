"""A model's random streams as a list of numbers, as PopTorch shows them."""

from __future__ import annotations

import torch

from pilotage.engine import Executor
from poptorch._errors import createPoptorchError

__all__ = ["random_state", "set_random_state"]


def random_state(executor: Executor) -> list[int]:
    """The seed, then the bytes of each replica's stream."""
    states = executor.random_streams.states
    seed = executor.execution.seed
    first = torch.initial_seed() if seed is None else seed
    return [first, *(int(byte) for state in states for byte in state)]


def set_random_state(executor: Executor, state: list[int]) -> None:
    """Restore each replica's stream to the state in the list."""
    streams = executor.random_streams
    present = streams.states
    size = sum(each.numel() for each in present)
    if len(state) != size + 1:
        raise createPoptorchError(
            f"The random state of this model is a list of {size + 1} numbers, but {len(state)} were given. Use the "
            "rng_state of a model with the same replication factor."
        )
    flat = torch.tensor(state[1:], dtype=torch.uint8)
    streams.states = list(flat.split([each.numel() for each in present]))
