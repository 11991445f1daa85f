"""Where tensors are kept while nobody works on them."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Locations:
    """What waits in the host's memory, and what each instance has only a share of.

    Every field is a number of elements: tensors of that size or more are meant, smaller ones stay where they are. None
    means no tensor at all. On a device whose memory is the host's own there is no other place to wait in.
    """

    activations: int | None = None
    """Values of forward wait on the host until backward needs them."""

    optimizer: int | None = None
    """What the optimizer remembers is on the device only during an update."""

    shared_optimizer: int | None = None
    """Each instance remembers, and updates, its share of the parameters alone, and tells the others."""

    def __post_init__(self) -> None:
        for name in ("activations", "optimizer", "shared_optimizer"):
            elements = getattr(self, name)
            if elements is not None and elements < 0:
                raise OptionError(f"{name} is {elements}. It is a number of elements, from 0 on, or None.")

    @property
    def uses_host(self) -> bool:
        """Whether anything waits on the host."""
        return self.activations is not None or self.optimizer is not None
