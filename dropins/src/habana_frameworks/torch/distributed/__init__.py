"""Several cards, one process per card."""

from __future__ import annotations

from habana_frameworks.torch.distributed import hccl as hccl
