"""Where the random numbers of a program come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


class RandomStreams:
    """One stream of random numbers for each replica.

    Without seeds there is one stream, torch's own: a program then draws exactly what eager PyTorch would draw, in the
    same order as the rest of the script. With seeds every replica has its own stream, which nothing else on the
    host disturbs.
    """

    def __init__(self, device: torch.device, seeds: Sequence[int] = ()) -> None:
        self._generator = _default_generator(device)
        self._states = [_state_of_seed(device, seed) for seed in seeds]
        self._borrowed: frozenset[int] = frozenset()
        """Replicas whose streams another device advances."""
        self._first: torch.Generator | None = None
        """Torch's generator of another device, if the program draws from that."""

    @property
    def shared(self) -> bool:
        """Whether the program draws from torch's own generator."""
        return not self._states

    @contextmanager
    def of_replica(self, replica: int) -> Iterator[None]:
        """Let torch draw from a replica's stream; the stream advances only if nothing is raised."""
        if self.shared and self._first is None:
            yield
            return
        outside = self._generator.get_state()
        self._generator.set_state(self._states[replica] if self._first is None else self._first.get_state())
        try:
            yield
            self._advance(replica)
        finally:
            self._generator.set_state(outside)

    def _advance(self, replica: int) -> None:
        if self._first is not None:
            self._first.set_state(self._generator.get_state())
        elif replica not in self._borrowed:
            self._states[replica] = self._generator.get_state()

    @property
    def states(self) -> list[Tensor]:
        """The current state of each stream."""
        return [state.clone() for state in self._states] or [self._generator.get_state()]

    @states.setter
    def states(self, states: Sequence[Tensor]) -> None:
        if self.shared:
            self._generator.set_state(states[0])
        else:
            # In place: cards that draw from the same streams have the same list.
            self._states[:] = [state.clone() for state in states]

    def on_device(self, device: torch.device, replicas: Collection[int]) -> RandomStreams:
        """The same streams for a device that runs some of the replicas; it advances only theirs."""
        there = RandomStreams(device)
        there._states = self._states
        there._borrowed = frozenset(range(len(self._states))).difference(replicas)
        if self.shared and there._generator is not self._generator:
            there._first = self._generator
        return there

    def part_from_torch(self, states: Sequence[Tensor]) -> None:
        """Draw from separate streams with these states from now on."""
        self._states = [state.clone() for state in states]


def seeds_for(
    random_seed: int | None, replicas: int, *, instance: int = 0, instances: int = 1, stage: int = 0, stages: int = 1
) -> list[int]:
    """A seed for each replica of this process.

    The first replica of all has the user's seed, so that a single one draws as in eager. If stages are processes, each
    of them has its own stream.
    """
    if random_seed is None and replicas * instances * stages == 1:
        return []
    first = torch.initial_seed() if random_seed is None else random_seed
    # An odd multiplier spreads neighbouring replicas over all 64-bit seeds.
    return [
        (first + (replica * stages + stage) * 0x9E3779B97F4A7C15) % 2**63
        for replica in range(instance * replicas, (instance + 1) * replicas)
    ]


def _default_generator(device: torch.device) -> torch.Generator:
    if device.type == "cpu":
        return torch.default_generator
    module = torch.get_device_module(device)
    module.init()
    generators: Sequence[torch.Generator] = module.default_generators
    return generators[device.index or 0]


def _state_of_seed(device: torch.device, seed: int) -> Tensor:
    return torch.Generator(device).manual_seed(seed).get_state()
