"""Habana's collectives without the card: the backend ``hccl`` of torch.distributed, implemented with gloo."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import cache
from typing import Any

import torch.distributed as dist

from habana_frameworks._emulation import computing_device

_WORLD = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
_MPI = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_MASTER = {"MASTER_ADDR": "localhost", "MASTER_PORT": "12345"}
_UNKNOWN = -1


def initialize_distributed_hpu(
    world_size: int | None = None, rank: int | None = None, local_rank: int | None = None
) -> tuple[int, int, int]:
    """Return world size, rank and local rank, and put them into the environment for init_process_group.

    They are the arguments, if all three are given, else what torchrun or mpirun set. Without a launcher the result is
    ``(1, -1, -1)``.
    """
    if world_size is not None and rank is not None and local_rank is not None:
        os.environ.update(zip(_WORLD, map(str, (world_size, rank, local_rank)), strict=True))
    elif not all(name in os.environ for name in _WORLD):
        if all(name in os.environ for name in _MPI):
            os.environ.update(zip(_WORLD, (os.environ[name] for name in _MPI), strict=True))
        for name, value in _MASTER.items():
            os.environ.setdefault(name, value)
    found = (
        int(os.environ.get("WORLD_SIZE", 1)),
        int(os.environ.get("RANK", _UNKNOWN)),
        int(os.environ.get("LOCAL_RANK", _UNKNOWN)),
    )
    _choose_module(*found)
    return found


def _choose_module(world_size: int, rank: int, local_rank: int) -> None:
    """Set ID to the rank, and HLS_MODULE_ID to the card of this process."""
    if rank != _UNKNOWN:
        os.environ["ID"] = str(rank)
    if world_size > 1 and local_rank != _UNKNOWN:
        visible = [each.strip() for each in os.environ.get("HABANA_VISIBLE_MODULES", "").split(",") if each.strip()]
        module = visible[local_rank] if local_rank < len(visible) else str(local_rank)
        os.environ.setdefault("HLS_MODULE_ID", module)


@cache
def register() -> None:
    """Register the backend for tensors on the card, on the host and on the computing device."""
    beneath = ["cpu", "cuda"] if computing_device.is_cuda() else ["cpu"]
    dist.Backend.register_backend("hccl", _gloo, devices=["hpu", *beneath])


def _gloo(store: Any, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
    group: dist.ProcessGroup = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)  # type: ignore[assignment]
    return group


register()
initialize_distributed_hpu()
