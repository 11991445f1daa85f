"""Kernels of the card without a name in torch."""

from __future__ import annotations

from habana_frameworks.torch.hpex.kernels.attention import FusedSDPA as FusedSDPA
from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingHelperV2 as RotaryPosEmbeddingHelperV2
