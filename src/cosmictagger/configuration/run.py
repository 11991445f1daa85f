"""The group ``run``: how long, how much at once, on what."""

from __future__ import annotations

from dataclasses import dataclass

from cosmictagger.configuration.choices import ComputeMode, Precision


@dataclass
class Run:
    """How long a run is, how much it takes at once and where it computes."""

    id: str = "???"
    """Names the folder that the run leaves behind; required."""

    distributed: bool = False
    """Train one network in all processes that torchrun, mpirun or srun has started."""

    compute_mode: ComputeMode = ComputeMode.CPU
    iterations: int = 500
    """Steps of this run; a resumed training does so many more."""

    aux_iterations: int = 10
    """Validate whenever so many steps are done."""

    minibatch_size: int = 2
    """Events of a step, over all processes and replicas together."""

    precision: Precision = Precision.float32
    profile: bool = False
    """Write a Chrome trace for each of the first steps."""

    saver: bool = True
    """Write TensorBoard files."""

    horovod_num_groups: int = 0
    broadcast_buffers: bool = True
    lazy_mode: bool = False
    """Gaudi's lazy graphs; HPU alone."""

    num_replicas: int = 1
    """Replicas of the program in this process; IPU alone, and not under poprun, which gives them out itself."""

    stages: int = 1
    """Parts that the network is split into, one for each IPU of a replica; IPU alone."""

    threads: int = 0
    """Threads that a CPU computes with; 0 leaves it to torch."""
