"""All options of a model."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from typing import Any, Self

from poptorch._errors import require
from poptorch._options_impl import canonical
from poptorch.enums import CommGroupType, ConnectionType, OutputMode, SyncPattern
from poptorch.options.batching import BatchingOptions
from poptorch.options.compilation import CompilationOptions
from poptorch.options.device import DeviceOptions
from poptorch.options.diagnostics import DiagnosticOptions
from poptorch.options.distributed import _DistributedOptions
from poptorch.options.jit import _JitOptions
from poptorch.options.loading import LoadingOptions
from poptorch.options.outputs import OutputOptions
from poptorch.options.popart import _PopartOptions
from poptorch.options.precision import _PrecisionOptions
from poptorch.options.strategies import PipelinedExecution, _IExecutionStrategy
from poptorch.options.tensor_locations import _TensorLocationOptions
from poptorch.options.training import _TrainingOptions

_GROUPS = {
    "TensorLocations": "_tensor_locations",
    "Distributed": "_distributed",
    "Jit": "_jit",
    "Precision": "_precision",
    "Training": "_training",
    "_Popart": "_popart",
}
"""The attributes that hold the groups of options."""


class Options(BatchingOptions, OutputOptions, DeviceOptions, CompilationOptions, DiagnosticOptions, LoadingOptions):
    """How a model is compiled and run; every method returns the options, so that calls can be chained."""

    def __init__(self) -> None:
        self._popart = _PopartOptions()
        self._tensor_locations = _TensorLocationOptions()
        self._distributed = _DistributedOptions()
        self._jit = _JitOptions()
        self._precision = _PrecisionOptions(self._popart)
        self._training = _TrainingOptions(self._popart)
        self._execution_strategy: _IExecutionStrategy = PipelinedExecution()
        self._source_location_excludes: list[str] = []
        self._relax_optimizer_checks = False
        self._show_compilation_progress_bar = True
        self._module_namescope_enabled = True
        self._progress_bar: Any = None
        super().__init__(
            replication_factor=1,
            input_group_size=1,
            input_cgt=CommGroupType.Consecutive,
            broadcast_buffers=True,
            device_iterations=1,
            log_dir=".",
            max_repeat_logs=4,
            auto_round_num_ipus=False,
            anchored_tensors={},
            output_mode=int(OutputMode.Default),
            output_return_period=1,
            connection_type=int(ConnectionType.Always),
            sync_pattern=int(SyncPattern.Full),
            available_memory_proportion={},
        )
        self._follow_environment()

    def _follow_environment(self) -> None:
        cache = os.environ.get("POPTORCH_CACHE_DIR")
        if cache:
            self.enableExecutableCaching(cache)
        self.from_json(os.environ.get("POPTORCH_DEFAULT_OPTIONS") or "{}")

    @property
    def TensorLocations(self) -> _TensorLocationOptions:
        """Where an IPU keeps its tensors."""
        return self._tensor_locations

    @property
    def Distributed(self) -> _DistributedOptions:
        """Which of how many host processes this is."""
        return self._distributed

    @property
    def Jit(self) -> _JitOptions:
        """How the model is turned into a graph."""
        return self._jit

    @property
    def Precision(self) -> _PrecisionOptions:
        """How numbers are rounded, accumulated and watched."""
        return self._precision

    @property
    def Training(self) -> _TrainingOptions:
        """How gradients are pooled into an update."""
        return self._training

    @property
    def _Popart(self) -> _PopartOptions:
        """Options that are passed to the backend unchanged."""
        return self._popart

    def toDict(self) -> dict[str, Any]:
        """All options for the backend; the output mode has to be resolved before."""
        require(
            not self.defaultOutputMode(),
            "The output mode is still OutputMode.Default. It is resolved when a model is wrapped.",
        )
        everything = self._popart.update(self._execution_strategy.backendOptions())
        for group in (self, self._training, self._distributed, self._tensor_locations):
            everything = group.update(everything)
        return everything

    def clone(self) -> Self:
        """An independent copy, which can be changed even if this one is frozen."""
        return copy.deepcopy(self)

    def _names(self) -> list[str]:
        """The names of all options, those of groups behind the name of the group."""
        # Read from vars() because unpickling reads attributes before any are set.
        groups = {name: vars(self).get(attribute) for name, attribute in _GROUPS.items()}
        within = [f"{name}.{each}" for name, group in groups.items() if group for each in group._names()]
        return [*super()._names(), *(name for name in within if not name.endswith(".set"))]

    def _shown(self) -> Iterable[str]:
        yield from super()._shown()
        for name, value in vars(self).items():
            if name not in ("_values", "_declared", "_is_frozen", "_is_sealed", "_progress_bar"):
                yield f"{name.removeprefix('_')}={canonical(value)}"
