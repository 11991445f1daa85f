"""What PopTorch checks once it knows the IPU of each block of a model."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from poptorch._options.execution import uses_ipu_model
from poptorch.enums import ConnectionType
from poptorch.options import Options, PipelinedExecution, ShardedExecution
from poptorch.poptorch_core import Error

MOST_IPUS = 64
"""The most IPUs that a model may use."""


def pipeline_stages(ipus: Iterable[int]) -> int:
    """Stages of a pipeline whose blocks ran on these IPUs: one, and one more for each change of IPU."""
    return max(1, sum(1 for _ in groupby(ipus)))


def check_pipeline_depth(options: Options, stages: int, *, training: bool) -> None:
    """Raise if one call has too few micro-batches to fill the pipeline."""
    strategy = options._execution_strategy
    if stages < 2 or not isinstance(strategy, PipelinedExecution) or isinstance(strategy, ShardedExecution):
        return
    if training and options.Training.gradient_accumulation < 2 * stages - 1:
        raise Error(
            "poptorch.Options().Training.gradientAccumulation must be greater than or equal to the number of pipeline "
            f"stages ({2 * stages - 1}) when using poptorch.PipelinedExecution. Please note that a model with {stages} "
            f"pipeline stages in PopTorch will have an additional {stages - 1} stages when training."
        )
    if not training and options.device_iterations < stages:
        raise Error(
            "poptorch.Options().deviceIterations must be greater than or equal to the number of pipeline stages "
            f"({stages}) when using PopTorch.PipelinedExecution."
        )


def check_ipu_count(options: Options, ipus: Iterable[int]) -> int:
    """The number of IPUs to reserve for a model on these IPUs; raise if PopTorch would not reserve them."""
    wanted: int = (max(ipus, default=0) + 1) * options.replication_factor
    reserved = 1 << (wanted - 1).bit_length()
    if reserved > MOST_IPUS:
        raise Error(
            f"Too many IPUs requested ({reserved}). Experiments that need more than {MOST_IPUS} IPUs need several "
            "processes."
        )
    is_attached = options.connection_type != ConnectionType.Never and not uses_ipu_model(options)
    if wanted != reserved and is_attached and not options.auto_round_num_ipus:
        raise Error(
            f"The model specifies the use of {wanted} IPUs, however PopTorch must reserve a minimum of {reserved} in "
            "order to allow the model to run, because PopTorch must reserve a power of two. Please reconfigure your "
            f"model to use a different number of IPUs or, to reserve {reserved} and leave {reserved - wanted} unused, "
            "set poptorch.Options().autoRoundNumIPUs(True)."
        )
    return reserved
