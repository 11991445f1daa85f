"""Kernels that the card has and torch does not name."""

from __future__ import annotations

from habana_frameworks.torch.hpex.kernels.attention import FusedSDPA as FusedSDPA
from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingHelperV2 as RotaryPosEmbeddingHelperV2
