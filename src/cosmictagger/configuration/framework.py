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
    """TensorFlow, listed so that it can be refused with an explanation."""

    name: str = "tensorflow"
    inter_op_parallelism_threads: int = 2
    intra_op_parallelism_threads: int = 24
