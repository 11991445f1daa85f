"""The older place of initialize_distributed_hpu."""

from __future__ import annotations

from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu as initialize_distributed_hpu
