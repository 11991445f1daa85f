"""Rules about the compute mode: its device, options, processes and precision."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pilotage
from cosmictagger.configuration.choices import CAPTURED, ComputeMode, Engine, Precision
from cosmictagger.configuration.framework import Torch
from cosmictagger.configuration.mode import Train
from cosmictagger.configuration.root import Configuration
from cosmictagger.configuration.run import Run
from pilotage import World

LAUNCH = "Start it with torchrun, mpirun, srun or poprun"


def present(config: Configuration) -> Iterator[str]:
    """Refuse a device that this machine or installation does not have."""
    mode = config.run.compute_mode
    if problem := _problem(mode):
        yield f"run.compute_mode={mode.name} is not available: {problem}. Use run.compute_mode=CPU."


def _problem(mode: ComputeMode) -> str | None:
    """Why a device cannot be used here; None if it can."""
    match mode:
        case ComputeMode.CPU:
            return None
        case ComputeMode.GPU | ComputeMode.CUDA:
            return _missing_card()
        case ComputeMode.XPU | ComputeMode.DPCPP:
            import torch

            return None if torch.xpu.is_available() else f"torch {torch.__version__} finds no Intel card (xpu)"
        case ComputeMode.HPU:
            is_installed = find_spec("habana_frameworks") is not None
            return None if is_installed else "habana_frameworks is not installed; pilotage-dropins has an emulation"
        case ComputeMode.IPU:
            if find_spec("poptorch") is None or find_spec("popdist") is None:
                return "poptorch or popdist is not installed; the distribution pilotage-dropins has both"
            return None


def _missing_card() -> str | None:
    import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    return None if torch.cuda.is_available() else "no CUDA device is available"


def options(config: Configuration) -> Iterator[str]:
    """Refuse options that belong to another compute mode."""
    run = config.run
    if run.horovod_num_groups:
        yield "run.horovod_num_groups belongs to horovod, which is not supported. Leave it at 0."
    if run.lazy_mode and run.compute_mode is not ComputeMode.HPU:
        yield "run.lazy_mode=true belongs to run.compute_mode=HPU. Leave it false."
    for name in ("num_replicas", "stages"):
        value = getattr(run, name)
        if value < 1:
            yield f"run.{name} is {value}. It must be at least 1."
        if value != 1 and run.compute_mode is not ComputeMode.IPU:
            yield f"run.{name}={value} belongs to run.compute_mode=IPU. Leave it at 1."
    yield from _engine(config)
    if run.stages > 2 * config.network.depth + 2:
        yield f"run.stages={run.stages} is more than a network of depth {config.network.depth} can be split into."


def _engine(config: Configuration) -> Iterator[str]:
    """Refuse an engine that the device does not have."""
    run, framework = config.run, config.framework
    if not isinstance(framework, Torch):
        return
    mode, engine = run.compute_mode, framework.engine
    if engine is Engine.eager and mode is ComputeMode.IPU:
        yield "framework.engine=eager is not available on an IPU, which runs compiled programs. Omit it."
    if engine is Engine.pilotage and mode not in (ComputeMode.CPU, ComputeMode.GPU, ComputeMode.IPU):
        yield f"framework.engine=pilotage is not available for run.compute_mode={mode.name}. Omit it."
    if engine is Engine.pilotage and mode is not ComputeMode.IPU and isinstance(config.mode, Train):
        if run.precision in (Precision.mixed, Precision.float16):
            yield f"framework.engine=pilotage does not scale losses, which run.precision={run.precision.name} needs."
        if config.mode.optimizer.name not in CAPTURED:
            yield f"framework.engine=pilotage cannot train with mode.optimizer.name={config.mode.optimizer.name.name}."


def shares_one_network(run: Run, world: World) -> bool:
    """Whether the processes of a launcher train together: as requested, or as instances of PopDist."""
    return world.size > 1 and (run.distributed or (run.compute_mode is ComputeMode.IPU and world.launcher == "poprun"))


def processes(config: Configuration) -> Iterator[str]:
    """Refuse what several processes cannot do together."""
    run, world = config.run, pilotage.world_here()
    instances = run.compute_mode is ComputeMode.IPU and world.launcher == "poprun"
    if run.distributed and world.launcher == "nobody":
        yield f"run.distributed=true, but no launcher started this process. {LAUNCH}, or use run.distributed=false."
    if world.stage is not None:
        yield (
            "poprun --ipus-per-replica starts a process for each stage, but CosmicTagger runs its stages in "
            "one. Omit the option; without poprun, run.stages splits the network."
        )
    if instances and run.stages > 1:
        yield f"run.stages={run.stages} needs one process so far, but poprun started {world.size}. Leave it at 1."
    together = world.size if shares_one_network(run, world) else 1
    shares = together * replicas_here(run, world)
    if run.minibatch_size % shares:
        yield (
            f"run.minibatch_size={run.minibatch_size} cannot be divided equally among {together} processes with "
            f"{shares // together} replicas each. Use a multiple of {shares}."
        )


def replicas_here(run: Run, world: World) -> int:
    """Replicas in each process."""
    if run.compute_mode is not ComputeMode.IPU:
        return 1
    return world.replicas_per_instance if world.launcher == "poprun" else run.num_replicas


def precision(config: Configuration) -> Iterator[str]:
    """Refuse a precision that the device does not support."""
    if message := refusal(config.run.precision, config.run.compute_mode):
        yield message


def refusal(precision: Precision, compute_mode: ComputeMode) -> str | None:
    """Why a precision is not available; None if it is."""
    if precision is Precision.float64 and compute_mode is not ComputeMode.CPU:
        return f"run.precision=float64 needs run.compute_mode=CPU. Use that, or float32 on the {compute_mode.name}."
    if precision is Precision.bfloat16 and compute_mode is ComputeMode.IPU and _has_ipu():
        return "run.precision=bfloat16 is not available: an IPU does not have this type. Use mixed, float16 or float32."
    return None


def _has_ipu() -> bool:
    """Whether PopTorch uses an IPU; the device behind our drop-in may have more types."""
    import poptorch

    return bool(poptorch.ipuHardwareIsAvailable())
