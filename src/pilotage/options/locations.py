"""Where to keep tensors that are not in use."""

from __future__ import annotations

from dataclasses import dataclass

from pilotage.errors import OptionError


@dataclass(frozen=True, kw_only=True, slots=True)
class Locations:
    """Which tensors are offloaded to the host's memory, and which are sharded among instances.

    Every field is a number of elements: it applies to tensors of that size or larger. None applies to no tensor. A
    device that uses the host's memory offloads nothing.
    """

    activations: int | None = None
    """Keep values of forward on the host until backward needs them."""

    optimizer: int | None = None
    """Keep the optimizer's state on the host except during an update."""

    shared_optimizer: int | None = None
    """Each instance keeps the optimizer's state of its shard of the parameters, updates it, and sends the result."""

    def __post_init__(self) -> None:
        for name in ("activations", "optimizer", "shared_optimizer"):
            elements = getattr(self, name)
            if elements is not None and elements < 0:
                raise OptionError(f"{name} is {elements}. It must be a number of elements of at least 0, or None.")

    @property
    def uses_host(self) -> bool:
        """Whether anything is offloaded to the host."""
        return self.activations is not None or self.optimizer is not None
