"""How the processes of a run come together, for each kind of device."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

import pilotage
from cosmictagger.configuration.choices import ComputeMode
from cosmictagger.configuration.run import Run
from cosmictagger.errors import DeviceError
from cosmictagger.processes.together import Processes
from pilotage import World


def join(run: Run) -> Processes:
    """Meet the other processes of the run where there are any to be met."""
    if run.compute_mode is ComputeMode.IPU:
        return _join_instances()
    world = pilotage.world_here()
    if not run.distributed or world.size == 1:
        return Processes()
    device, backend = exchange_of(run.compute_mode, world)
    _meet(world, backend if device == "cpu" else f"cpu:gloo,{device}:{backend}")
    return Processes(world=world, backend=backend)


def exchange_of(compute_mode: ComputeMode, world: World) -> tuple[str, str]:
    """Which kind of tensors hold the gradients, and what carries them from process to process."""
    match compute_mode:
        case ComputeMode.GPU:
            return "cuda", "nccl"
        case ComputeMode.XPU:
            return "xpu", _intel_backend()
        case ComputeMode.HPU:
            # Habana's library finds its card by these, which mpirun does not set.
            os.environ["ID"] = os.environ["LOCAL_RANK"] = str(world.local_rank)
            import habana_frameworks.torch.distributed.hccl  # noqa: F401

            return "hpu", "hccl"
        case _:
            return "cpu", "gloo"


def _intel_backend() -> str:
    """Torch's own backend for Intel's cards, or the one that Intel's package brings."""
    if dist.is_xccl_available():
        return "xccl"
    try:
        import oneccl_bindings_for_pytorch  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        raise DeviceError(
            "Several XPU processes talk by oneCCL: take a torch with xccl, or install oneccl_bindings_for_pytorch."
        ) from None
    return "ccl"


def _join_instances() -> Processes:
    """PopDist makes the instances known to each other; values of the host go by gloo."""
    import popdist

    if not popdist.isPopdistEnvSet():
        world = pilotage.world_here()
        if world.size > 1:
            _meet(world, "gloo")
        return Processes(world=world, backend="gloo" if world.size > 1 else "none")
    popdist.init()
    world = pilotage.world_here()
    if world.size > 1 and not dist.is_initialized():
        _meet(world, "gloo")
    return Processes(world=world, backend="popdist", per_instance_files=True)


def _meet(world: World, backend: str) -> None:
    if world.directory is None and (world.address is None or world.port is None):
        raise DeviceError(
            f"This is process {world.rank} of {world.size}, started by {world.launcher}, and where they meet is not known. "
            "Set MASTER_ADDR to the host of process 0 and MASTER_PORT to a free port there."
        )
    if "xpu" in backend:
        torch.xpu.set_device(world.local_rank % torch.xpu.device_count())
    pilotage.join_world(world, backend)
