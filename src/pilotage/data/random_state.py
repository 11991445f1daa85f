"""The state of the random generators that data sets, samplers and transforms draw from."""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch

__all__ = ["RandomState"]


@dataclass(frozen=True, slots=True)
class RandomState:
    """The state of Python's, NumPy's and torch's own generators, and of other generators of torch."""

    python: tuple[Any, ...]
    numpy: Any
    generators: tuple[bytes, ...]
    """torch's default generator first, then the others in their order."""

    @classmethod
    def current(cls, generators: Sequence[torch.Generator] = ()) -> Self:
        """Read the state of this process."""
        states = (each.get_state().numpy().tobytes() for each in (torch.default_generator, *generators))
        return cls(random.getstate(), np.random.get_state(), tuple(states))

    def restore(self, generators: Sequence[torch.Generator] = ()) -> None:
        """Set the generators of this process; ``generators`` are those given to `current`, in the same order."""
        for generator, state in zip((torch.default_generator, *generators), self.generators, strict=True):
            generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        random.setstate(self.python)
        np.random.set_state(self.numpy)

    def as_plain_data(self) -> dict[str, Any]:
        """The state as lists, numbers and strings, for a checkpoint."""
        version, numbers, gauss = self.python
        name, keys, position, has_gauss, cached = self.numpy
        return {
            "torch": [base64.b64encode(state).decode() for state in self.generators],
            "python": [version, list(numbers), gauss],
            "numpy": [name, np.asarray(keys).tolist(), position, has_gauss, cached],
        }

    @classmethod
    def from_plain_data(cls, data: Mapping[str, Any]) -> Self:
        """Read what `as_plain_data` returned."""
        version, numbers, gauss = data["python"]
        name, keys, position, has_gauss, cached = data["numpy"]
        return cls(
            (version, tuple(numbers), gauss),
            (name, np.array(keys, dtype=np.uint32), position, has_gauss, cached),
            tuple(map(base64.b64decode, data["torch"])),
        )
