"""Norms that the card computes in one kernel."""

from __future__ import annotations

from habana_frameworks.torch.hpex.normalization.clipping import FusedClipNorm as FusedClipNorm
from habana_frameworks.torch.hpex.normalization.root_mean_square import FusedRMSNorm as FusedRMSNorm
from habana_frameworks.torch.hpex.normalization.root_mean_square import RmsNormBwdMode as RmsNormBwdMode
