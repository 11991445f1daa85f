"""Normalisation by the root mean square."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


class FusedRMSNorm:
    """torch's ``rms_norm`` with the vendor's interface."""

    @staticmethod
    def apply(data: Tensor, gamma: Tensor, eps: float) -> Tensor:
        """Divide by the root mean square over the dimensions of gamma, and multiply by gamma."""
        return functional.rms_norm(data, tuple(gamma.shape), gamma.to(data.dtype), eps)
