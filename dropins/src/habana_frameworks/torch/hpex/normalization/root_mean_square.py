"""Normalisation by the root of the mean square."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


class FusedRMSNorm:
    """torch's ``rms_norm`` under the name and in the form of the vendor's function."""

    @staticmethod
    def apply(data: Tensor, gamma: Tensor, eps: float) -> Tensor:
        """Divide by the root of the mean square over the last dimensions, as many as gamma has, and multiply by gamma."""
        return functional.rms_norm(data, tuple(gamma.shape), gamma.to(data.dtype), eps)
