"""Habana's collectives without the card: the backend ``hccl`` of torch.distributed, implemented with gloo."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import cache
from typing import Any

import torch.distributed as dist

from habana_frameworks._emulation import computing_device

_WORLD = (
    ("WORLD_SIZE", "RANK", "LOCAL_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
)


def initialize_distributed_hpu() -> tuple[int, int, int]:
    """Read world size, rank and local rank from the launcher's variables (torchrun or mpirun), and set ID."""
    for names in _WORLD:
        if names[0] in os.environ:
            world_size, rank, local_rank = (int(os.environ[name]) for name in names)
            os.environ["ID"] = str(local_rank)
            return world_size, rank, local_rank
    return 1, 0, 0


@cache
def register() -> None:
    """Register the backend for tensors on the card, on the host and on the computing device."""
    beneath = ["cpu", "cuda"] if computing_device.is_cuda() else ["cpu"]
    dist.Backend.register_backend("hccl", _gloo, devices=["hpu", *beneath])


def _gloo(store: Any, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
    group: dist.ProcessGroup = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)  # type: ignore[assignment]
    return group


register()
