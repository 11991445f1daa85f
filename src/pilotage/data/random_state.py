"""The random number streams of a process, to be carried on in another."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class RandomState:
    """Where Python's, numpy's and torch's random streams stand."""

    python: tuple[Any, ...]
    numpy: Any
    torch: bytes

    @classmethod
    def of_this_process(cls) -> RandomState:
        """The state as it is now."""
        return cls(random.getstate(), np.random.get_state(), torch.get_rng_state().numpy().tobytes())

    def restore(self) -> None:
        """Let this process's streams carry on from here."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)
        torch.set_rng_state(torch.frombuffer(bytearray(self.torch), dtype=torch.uint8))
