"""How a program is compiled, kept and named."""

from __future__ import annotations

import os
from typing import Self

from poptorch._errors import require
from poptorch._options_impl import OptionsDict
from poptorch.options.popart import _PopartOptions
from poptorch.options.strategies import _IExecutionStrategy

_RANDOM_NORMAL_DATA = 2


class CompilationOptions(OptionsDict):
    """The part of the options that says how a program is compiled."""

    _popart: _PopartOptions

    def setExecutionStrategy(self, strategy: _IExecutionStrategy) -> Self:
        """Set the order and the IPUs of the model's blocks."""
        require(
            isinstance(strategy, _IExecutionStrategy),
            "A strategy must be a poptorch.PipelinedExecution, ShardedExecution, ParallelPhasedExecution or "
            f"SerialPhasedExecution, not {strategy!r}.",
        )
        self._execution_strategy = strategy
        return self

    def enableExecutableCaching(self, path: str | os.PathLike[str] | None) -> Self:
        """Keep compiled programs in this directory; None keeps none."""
        if path is None:
            self._popart.set("enableEngineCaching", False)
            self._popart.remove("cachePath")
            return self
        self._popart.set("cachePath", os.fspath(path))
        self._popart.set("enableEngineCaching", True)
        return self

    def modelName(self, name: str) -> Self:
        """The name of the model's profile; "inference" or "training" by default."""
        require(isinstance(name, str), f"The name of a model must be a string, not {name!r}.")
        return self.createOrSet(model_name=name)

    def enableStableNorm(self, enabled: bool) -> Self:
        """Compute norms by a slower formula that does not overflow."""
        require(isinstance(enabled, bool), f"enableStableNorm takes True or False, not {enabled!r}.")
        self._popart.set("enableStableNorm", enabled)
        return self

    def enableSyntheticData(self, enabled: bool | int) -> Self:
        """Let the device generate its inputs instead of reading the host's; PopART's mode numbers are accepted too."""
        require(isinstance(enabled, (bool, int)), f"enableSyntheticData takes True or False, not {enabled!r}.")
        self._popart.set("syntheticDataMode", _RANDOM_NORMAL_DATA if enabled else 0)
        return self

    def updatableNamedBuffers(self, buffers: list[str]) -> Self:
        """Buffers that copyNamedBuffersToDevice may change."""
        require(
            isinstance(buffers, list) and all(isinstance(name, str) for name in buffers),
            f"updatableNamedBuffers takes a list of names, not {buffers!r}.",
        )
        self._popart.set("updatableNamedBuffers", buffers)
        return self

    def relaxOptimizerAttributesChecks(self, relax: bool = True) -> Self:
        """Log unexpected attributes of an optimizer only at level DEBUG."""
        self._relax_optimizer_checks = bool(relax)
        return self

    def disableModuleNamescope(self) -> Self:
        """Do not name operations after their modules."""
        self._module_namescope_enabled = False
        return self
