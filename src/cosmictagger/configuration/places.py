"""Where a run may compute, and in how many processes: what cannot be is refused before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pilotage
from cosmictagger.configuration.choices import ComputeMode, ModeKind
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from pilotage import World

LAUNCH = "Start it by torchrun, mpirun, srun or poprun"


def places(chosen: Configuration) -> Iterator[str]:
    """Refusals of devices that are not there and of options that belong to others."""
    run = chosen.run
    yield from _missing(run.compute_mode)
    if run.horovod_num_groups:
        yield "run.horovod_num_groups belongs to horovod, which is not there. Leave it at 0."
    if run.lazy_mode and run.compute_mode is not ComputeMode.HPU:
        yield "run.lazy_mode=true belongs to run.compute_mode=HPU. Leave it false."
    for name in ("num_replicas", "stages"):
        value = getattr(run, name)
        if value < 1:
            yield f"run.{name} is {value}. It has to be at least 1."
        if value != 1 and run.compute_mode is not ComputeMode.IPU:
            yield f"run.{name}={value} belongs to run.compute_mode=IPU. Leave it at 1."
    if run.stages > 2 * chosen.network.depth + 2:
        yield f"run.stages={run.stages} is more than a network of depth {chosen.network.depth} can be cut into."


def processes(chosen: Configuration) -> Iterator[str]:
    """Refusals of processes that would not train one network together."""
    run, world = chosen.run, pilotage.world_here()
    instances = run.compute_mode is ComputeMode.IPU and world.launcher == "poprun"
    if run.distributed and world.launcher == "nobody":
        yield f"run.distributed=true, and nothing says which process this is. {LAUNCH}, or say run.distributed=false."
    if world.size > 1 and not run.distributed and not instances:
        yield (
            f"{world.launcher} has started {world.size} processes, and run.distributed=false: each would train a network of "
            "its own into the same folder. Say run.distributed=true, or start one."
        )
    if world.stage is not None:
        yield (
            "poprun --ipus-per-replica gives each stage a process of its own, and CosmicTagger keeps its stages in one. Leave the "
            "option out; run.stages splits the network where there is no poprun."
        )
    if instances and run.stages > 1:
        yield f"run.stages={run.stages} is for one process so far, and poprun has started {world.size}. Leave it at 1."
    if world.size > 1 and chosen.mode.name is not ModeKind.train:
        yield f"mode={chosen.mode.name.name} runs in one process, and {world.launcher} has started {world.size}."
    shares = world.size * replicas_here(run, world)
    if run.minibatch_size % shares:
        yield (
            f"run.minibatch_size={run.minibatch_size} cannot be shared equally by {world.size} processes with "
            f"{shares // world.size} replicas each. Take a multiple of {shares}."
        )


def replicas_here(run: Run, world: World) -> int:
    """Replicas in each process."""
    if run.compute_mode is not ComputeMode.IPU:
        return 1
    return world.replicas_per_instance if world.launcher == "poprun" else run.num_replicas


def surroundings(chosen: Configuration) -> dict[str, str]:
    """Variables that have to stand before torch or a vendor's package is imported."""
    wanted = {name: str(value) for name, value in chosen.framework.environment_variables.items()}
    match chosen.run.compute_mode:
        case ComputeMode.GPU:
            wanted |= _own_card(pilotage.world_here())
        case ComputeMode.HPU:
            wanted["PT_HPU_LAZY_MODE"] = "1" if chosen.run.lazy_mode else "0"
        case ComputeMode.IPU:
            # Results must not depend on when a faster executable is ready.
            wanted.setdefault("PILOTAGE_TIER", os.environ.get("PILOTAGE_TIER", "graph"))
    return wanted


def _own_card(world: World) -> dict[str, str]:
    """Let each process of a host see one card, its own."""
    if world.size == 1:
        return {}
    visible = [card for card in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if card]
    return {"CUDA_VISIBLE_DEVICES": visible[world.local_rank % len(visible)] if visible else str(world.local_rank)}


def _missing(compute_mode: ComputeMode) -> Iterator[str]:
    problem = None
    match compute_mode:
        case ComputeMode.GPU:
            problem = _missing_card()
        case ComputeMode.XPU:
            import torch

            problem = None if torch.xpu.is_available() else f"torch {torch.__version__} finds no XPU"
        case ComputeMode.DPCPP:
            problem = "that was an earlier name of Intel's devices, which are XPU today"
        case ComputeMode.HPU if find_spec("habana_frameworks") is None:
            problem = "there is no habana_frameworks; the distribution pilotage-dropins has one that emulates the card"
        case ComputeMode.IPU if find_spec("poptorch") is None or find_spec("popdist") is None:
            problem = "there is no poptorch or no popdist; the distribution pilotage-dropins has both"
    if problem:
        yield f"run.compute_mode={compute_mode.name} cannot be: {problem}. Say run.compute_mode=CPU."


def _missing_card() -> str | None:
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    return None if torch.cuda.is_available() else "no CUDA device answers"
