"""Collectives of the core; see `habana_frameworks.torch.distributed.hccl`."""
