"""The time of one operation, by category."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Arithmetic", "Cost"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Seconds of one operation."""

    compute: float = 0.0
    """Arithmetic, and the memory traffic that goes with it."""

    exchange: float = 0.0
    """Moving data between tiles."""

    synchronisation: float = 0.0
    launch: float = 0.0
    host: float = 0.0
    """Moving data from or to memory outside of the device."""

    @property
    def seconds(self) -> float:
        """The sum of all categories."""
        return self.compute + self.exchange + self.synchronisation + self.launch + self.host


@dataclass(frozen=True, kw_only=True, slots=True)
class Arithmetic:
    """Which float32 products may be computed with a mantissa of 10 bits."""

    products_in_tf32: bool = False
    convolutions_in_tf32: bool = True

    @classmethod
    def of_torch(cls) -> Arithmetic:
        """The present settings of torch in this process."""
        return cls(
            products_in_tf32=torch.get_float32_matmul_precision() != "highest",
            convolutions_in_tf32=bool(torch.backends.cudnn.allow_tf32),
        )
