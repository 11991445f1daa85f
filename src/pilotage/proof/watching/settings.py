"""The settings of a watched process, as text in an environment variable."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

__all__ = ["WatchSettings"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchSettings:
    """How a process is watched."""

    folder: str
    """Where each process writes its record."""

    steps: int = 50
    """How many updates are recorded."""

    seed: int = 0

    batch_factor: int = 1
    """How many times larger the batches of training loaders become, to equal those of a port."""

    gradient_factor: float = 1.0
    """The factor on gradients before each update, to equal a port's reduction."""

    noise: float = 0.0
    """The relative size of the rounding errors that are added to the weights before each update."""

    @property
    def changes_gradients(self) -> bool:
        """Whether gradients are changed before each update."""
        return self.gradient_factor != 1.0 or self.noise != 0.0

    def as_text(self) -> str:
        """These settings for a variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The settings in a variable."""
        return cls(**json.loads(text))
