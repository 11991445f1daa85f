"""Kernels of the card without a name in torch."""

from __future__ import annotations

from habana_frameworks.torch.hpex.kernels import Fp8Ops as Fp8Ops
from habana_frameworks.torch.hpex.kernels import Softmax as Softmax
from habana_frameworks.torch.hpex.kernels.attention import FusedSDPA as FusedSDPA
from habana_frameworks.torch.hpex.kernels.ctc import CTCLoss as CTCLoss
from habana_frameworks.torch.hpex.kernels.refused import EmbeddingBag as EmbeddingBag
from habana_frameworks.torch.hpex.kernels.refused import EmbeddingBagPreproc as EmbeddingBagPreproc
from habana_frameworks.torch.hpex.kernels.refused import RandomSeed as RandomSeed
from habana_frameworks.torch.hpex.kernels.refused import fp8_fused_sdpa as fp8_fused_sdpa
from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingHelperV1 as RotaryPosEmbeddingHelperV1
from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingHelperV2 as RotaryPosEmbeddingHelperV2
from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingHelperV3 as RotaryPosEmbeddingHelperV3
from habana_frameworks.torch.hpex.kernels.rotary import RotaryPosEmbeddingMode as RotaryPosEmbeddingMode
from habana_frameworks.torch.hpex.kernels.rotary import apply_rotary_pos_emb as apply_rotary_pos_emb
from habana_frameworks.torch.hpex.kernels.Softmax import CustomSoftmax as CustomSoftmax
from habana_frameworks.torch.hpex.kernels.written_attention import PySDPA as PySDPA
from habana_frameworks.torch.hpex.kernels.written_attention import PySDPAHinted as PySDPAHinted
