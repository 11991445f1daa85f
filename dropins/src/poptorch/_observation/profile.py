"""The profile of `enableProfiling`: a trace of the first run, written by torch's profiler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from poptorch.options import Options
from poptorch.options.diagnostics import engine_options_of_environment

__all__ = ["Profile", "engine_options_of", "profile_directory", "profile_of"]

_FILE_NAME = "profile.pop"
"""The file name that programs look for; the content is JSON for Perfetto and chrome://tracing."""


class Profile:
    """Records one run of a model."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / _FILE_NAME
        self._is_written = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Profile the block, unless a run has been profiled already."""
        if self._is_written:
            yield
            return
        from torch.profiler import profile  # Takes a second to import.

        # Torch 2.11 warns that events of earlier cycles are lost, even with a single cycle, unless they are kept.
        with profile(acc_events=True) as profiled:
            yield
        self._file.parent.mkdir(parents=True, exist_ok=True)
        profiled.export_chrome_trace(str(self._file))
        self._is_written = True


def profile_of(options: Options, *, training: bool) -> Profile | None:
    """The profile that these options request, if any."""
    directory = profile_directory(options, training=training)
    return None if directory is None else Profile(directory)


def profile_directory(options: Options, *, training: bool) -> Path | None:
    """Where the profile of a model is written; None if none is requested."""
    asked = engine_options_of(options)
    if str(asked.get("autoReport.all", "false")).lower() != "true":
        return None
    default = "training" if training else "inference"
    name = options.model_name if options.exists("model_name") else default
    return Path(str(asked.get("autoReport.directory", "."))) / name


def engine_options_of(options: Options) -> dict[str, object]:
    """The options for Poplar's engine; those of the program have precedence over those of the environment."""
    return {**engine_options_of_environment(), **options._Popart.settings.engine_options}
