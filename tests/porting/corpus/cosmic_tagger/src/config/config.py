from dataclasses import dataclass, field
from enum import Enum

from hydra.core.config_store import ConfigStore


class ComputeMode(Enum):
    CPU   = 0
    GPU   = 1
    DPCPP = 2
    XPU   = 3


class Framework(Enum):
    torch      = 0
    tensorflow = 1


class ModeKind(Enum):
    train     = 0
    inference = 1


class OptimizerKind(Enum):
    adam    = 0
    rmsprop = 1


@dataclass
class Run:
    distributed:        bool        = True
    compute_mode:       ComputeMode = ComputeMode.GPU
    iterations:         int         = 8
    aux_iterations:     int         = 4
    minibatch_size:     int         = 2
    id:                 str         = "cosmic"
    seed:               int         = 163


@dataclass
class Optimizer:
    name:          OptimizerKind = OptimizerKind.adam
    learning_rate: float         = 3e-3


@dataclass
class Mode:
    name:                 ModeKind  = ModeKind.train
    optimizer:            Optimizer = field(default_factory=Optimizer)
    checkpoint_iteration: int       = 4
    logging_iteration:    int       = 1


@dataclass
class Network:
    n_initial_filters: int = 4
    depth:             int = 2


@dataclass
class Config:
    run:        Run       = field(default_factory=Run)
    mode:       Mode      = field(default_factory=Mode)
    network:    Network   = field(default_factory=Network)
    framework:  Framework = Framework.torch
    output_dir: str       = "output/"


def register():
    ConfigStore.instance().store(name="base_config", node=Config)
