"""The group ``framework``."""

from __future__ import annotations

from dataclasses import dataclass, field

from cosmictagger.configuration.choices import DistributedMode


@dataclass
class Framework:
    """What every framework has."""

    name: str = "torch"
    seed: int = 0
    """Seeds weights and random streams; 0 takes one from the clock."""

    environment_variables: dict[str, str] = field(default_factory=dict)
    """Exported before anything is imported."""


@dataclass
class Torch(Framework):
    """PyTorch."""

    name: str = "torch"
    sparse: bool = False
    distributed_mode: DistributedMode = DistributedMode.DDP


@dataclass
class Tensorflow(Framework):
    """TensorFlow, which is named so that it can be refused in words."""

    name: str = "tensorflow"
    inter_op_parallelism_threads: int = 2
    intra_op_parallelism_threads: int = 24
