"""Normalisation by the root mean square."""

from __future__ import annotations

from enum import IntEnum

from torch import Tensor
from torch.nn import functional


class RmsNormBwdMode(IntEnum):
    """How the card computes backward."""

    DEFAULT = 0
    STATIC_CASE_WIDTH_PARTITIONING = 1


class FusedRMSNorm:
    """torch's ``rms_norm`` with the vendor's interface."""

    @staticmethod
    def apply(
        data_in: Tensor,
        gamma: Tensor,
        eps: float,
        use_stages: bool = True,
        bwd_mode: int = 0,
        fast_math: bool = False,
        /,
    ) -> Tensor:
        """Divide by the root mean square over the dimensions of gamma, and multiply by gamma.

        The last three arguments choose kernels of the card and change no results.
        """
        RmsNormBwdMode(bwd_mode)
        return functional.rms_norm(data_in, tuple(gamma.shape), gamma.to(data_in.dtype), eps)
