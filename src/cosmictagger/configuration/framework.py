"""The group ``framework``."""

from __future__ import annotations

from dataclasses import dataclass, field

from cosmictagger.configuration.choices import DistributedMode, Engine


@dataclass
class Framework:
    """Fields of every framework."""

    name: str = "torch"
    seed: int = 0
    """Seed of weights and random numbers; 0 takes one from the clock."""

    environment_variables: dict[str, str] = field(default_factory=dict)
    """Set before torch is imported."""


@dataclass
class Torch(Framework):
    """PyTorch."""

    name: str = "torch"
    sparse: bool = False
    distributed_mode: DistributedMode = DistributedMode.DDP
    engine: Engine = Engine.auto
    """What executes the steps on a processor: a program of Pilotage, or torch operation by operation."""


@dataclass
class Tensorflow(Framework):
    """TensorFlow 2, which trains the same 2D network; needs the extra cosmic-tensorflow."""

    name: str = "tensorflow"
    inter_op_parallelism_threads: int = 0
    """Operations that run at the same time; 0 leaves the number to TensorFlow."""

    intra_op_parallelism_threads: int = 0
    """Threads of one operation; 0 takes run.threads, or leaves the number to TensorFlow."""
