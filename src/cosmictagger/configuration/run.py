"""The group ``run``: length, batch size and device."""

from __future__ import annotations

from dataclasses import dataclass

from cosmictagger.configuration.choices import ComputeMode, Precision, RunUnit


@dataclass
class Run:
    """The length, the batch size and the device of a run.

    Large because each field is an option of the group ``run``.
    """

    id: str = "???"
    """Names the run and its folder; required."""

    distributed: bool = False
    """Train one network in all processes that torchrun, mpirun or srun started."""

    compute_mode: ComputeMode = ComputeMode.CPU
    iterations: int = 500
    """Steps of this run; a resumed run does this many more."""

    run_length: int = 0
    """Length of the whole run, resumed parts included, in ``run_units``; 0 means that ``iterations`` counts."""

    run_units: RunUnit = RunUnit.epoch
    aux_iterations: int = 10
    """Validate every this many steps."""

    minibatch_size: int = 2
    """Events of a step, over all processes and replicas."""

    precision: Precision = Precision.float32
    profile: bool = False
    """Write a Chrome trace for each of the first steps."""

    saver: bool = True
    """Write TensorBoard files."""

    horovod_num_groups: int = 0
    broadcast_buffers: bool = True
    lazy_mode: bool = False
    """Gaudi's lazy mode; HPU only."""

    num_replicas: int = 1
    """Replicas of the program in this process; IPU only. Under poprun, poprun sets them."""

    stages: int = 1
    """Pipeline stages of the network, one for each IPU of a replica; IPU only."""

    threads: int = 0
    """CPU threads; 0 leaves the number to torch."""
