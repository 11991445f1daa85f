"""What is logged, timed and profiled."""

from __future__ import annotations

import json
import os
from typing import Self

from poptorch._errors import require
from poptorch._logging import logger
from poptorch._options_impl import OptionsDict
from poptorch.options.popart import _PopartOptions

_UNLIMITED = 2**64 - 1


class DiagnosticOptions(OptionsDict):
    """The part of the options that says what is logged, timed and profiled."""

    _popart: _PopartOptions
    _source_location_excludes: list[str]

    def logDir(self, log_dir: str) -> Self:
        """Where log files are written."""
        return self.set(log_dir=log_dir)

    def maxRepeatLogs(self, max_lines: int | None) -> Self:
        """Limit how often the same message is shown while a model is compiled; None for no limit."""
        require(
            max_lines is None or (isinstance(max_lines, int) and max_lines >= 0),
            f"maxRepeatLogs takes None or a whole number of at least 0, not {max_lines!r}.",
        )
        return self.set(max_repeat_logs=_UNLIMITED if max_lines is None else max_lines)

    def sourceLocationExcludes(self, excludes: list[str]) -> Self:
        """Parts of file names to leave out of the source locations of operations."""
        _check_names(excludes)
        self._source_location_excludes = list(excludes)
        return self

    def appendToLocationExcludes(self, *excludes: str) -> Self:
        """Add to `sourceLocationExcludes`."""
        _check_names(list(excludes))
        self._source_location_excludes = [*self._source_location_excludes, *excludes]
        return self

    def showCompilationProgressBar(self, show: bool = True) -> Self:
        """Draw the progress of compilations, and time them."""
        self._show_compilation_progress_bar = bool(show)
        return self

    def logCycleCount(self, log_cycle_count: bool) -> Self:
        """Count the cycles of the device during a call."""
        require(isinstance(log_cycle_count, bool), f"logCycleCount takes True or False, not {log_cycle_count!r}.")
        self._popart.set("instrumentWithHardwareCycleCounter", log_cycle_count)
        return self

    def enableProfiling(self, profile_dir: str | os.PathLike[str] | None = None) -> Self:
        """Write a profile of compilation and execution below this directory, or below the current one."""
        wanted = {
            "debug.allowOutOfMemory": "true",
            "autoReport.directory": os.fspath(profile_dir) if profile_dir is not None else ".",
            "autoReport.all": "true",
        }
        given = engine_options_of_environment()
        clashes = [name for name in wanted if name in given]
        if clashes:
            logger.warning(
                "enableProfiling overrides %s from the environment variable POPLAR_ENGINE_OPTIONS.", ", ".join(clashes)
            )
        self._popart.setEngineOptions(wanted)
        return self


def _check_names(excludes: list[str]) -> None:
    require(
        isinstance(excludes, list) and all(isinstance(name, str) for name in excludes),
        f"Excluded locations must be strings, not {excludes!r}.",
    )


def engine_options_of_environment() -> dict[str, object]:
    """The engine options in POPLAR_ENGINE_OPTIONS."""
    text = os.environ.get("POPLAR_ENGINE_OPTIONS") or "{}"
    try:
        options = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"The environment variable POPLAR_ENGINE_OPTIONS is not JSON: {error}") from error
    return options if isinstance(options, dict) else {}
