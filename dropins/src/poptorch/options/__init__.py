"""Options, execution strategies and tensor locations."""

from __future__ import annotations

from poptorch.options.calls import ConfigFileError
from poptorch.options.distributed import _DistributedOptions as _DistributedOptions
from poptorch.options.jit import _JitOptions as _JitOptions
from poptorch.options.options import Options
from poptorch.options.popart import _PopartOptions as _PopartOptions
from poptorch.options.precision import _PrecisionOptions as _PrecisionOptions
from poptorch.options.stages import BlockId, Phase, Stage
from poptorch.options.strategies import (
    ParallelPhasedExecution,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
)
from poptorch.options.strategies import _IExecutionStrategy as _IExecutionStrategy
from poptorch.options.strategies import _IPhasedExecution as _IPhasedExecution
from poptorch.options.tensor_locations import TensorLocationSettings
from poptorch.options.tensor_locations import _TensorLocationOptions as _TensorLocationOptions
from poptorch.options.training import _TrainingOptions as _TrainingOptions

__all__ = [
    "BlockId",
    "ConfigFileError",
    "Options",
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "SerialPhasedExecution",
    "ShardedExecution",
    "Stage",
    "TensorLocationSettings",
]
