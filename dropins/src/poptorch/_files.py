"""Compiled models as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from torch import nn

from pilotage.errors import ProgramFileError
from pilotage.runtime.stored import BareModule, StoredModel, load_weights, read_stored, store
from poptorch._errors import translated
from poptorch._logging import logger
from poptorch._options_text import options_from_data, options_to_data
from poptorch._poplar_executor import PoplarExecutor
from poptorch._version import __version__
from poptorch.options import Options

__all__ = ["load", "load_executable", "save_executable"]

_DEFAULT_NAME = "model.poptorch"


def save_executable(
    executor: PoplarExecutor, filename: str | Path, *, export_model: bool, save_rng_state: bool = True
) -> None:
    """Write a compiled model to a file."""
    path = _target(Path(filename))
    extra = {
        "poptorch": __version__,
        "training": executor.trains,
        "options": options_to_data(executor.options),
        "model": type(executor.model).__qualname__,
    }
    with translated():
        store(
            executor.engine,
            path,
            with_weights=export_model,
            with_random_streams=save_rng_state,
            extra=json.loads(json.dumps(extra)),
        )


def load(
    filename: str | Path,
    edit_opts_fn: Callable[[Options], None] | None = None,
    *,
    model: nn.Module | None = None,
) -> PoplarExecutor:
    """Run a model that was saved: it needs neither its class nor a compilation.

    With an instance of its class, ``.model`` is that instance, with the saved weights.
    """
    stored = _read(Path(filename))
    assert stored.weights is not None, (
        f"{filename} was written with export_model=False and holds no model. Wrap the model as before and use "
        "loadExecutable."
    )
    if model is not None:
        load_weights(model, stored.weights)
    options = options_from_data(stored.extra["options"])
    if edit_opts_fn is not None:
        edit_opts_fn(options)
    executor = PoplarExecutor(model or BareModule.of(stored), options, training=stored.extra["training"], stored=stored)
    load_executable(executor, filename)
    return executor


def load_executable(executor: PoplarExecutor, filename: str | Path) -> None:
    """Give a wrapped model the program of a file instead of compiling it."""
    stored = _read(Path(filename))
    if stored.extra["training"] != executor.trains:
        kinds = {True: "training", False: "inference"}
        raise ProgramFileError(
            f"{filename} holds a model for {kinds[stored.extra['training']]}, and this one is for {kinds[executor.trains]}."
        )
    with translated():
        executor.engine.adopt(stored.program, stored.optimizer)
        if stored.random_streams is not None and not executor.engine.session.streams.shared:
            executor.engine.session.streams.states = stored.random_streams


def _read(path: Path) -> StoredModel:
    with translated():
        stored = read_stored(path)
    version = stored.extra.get("poptorch")
    assert version == __version__, (
        f"Invalid file {path}: PopTorch version mismatch: it was written by {version}, and this is {__version__}."
    )
    return stored


def _target(path: Path) -> Path:
    if path.is_dir():
        logger.warning("%s is a directory: the model is saved as %s in it.", path, _DEFAULT_NAME)
        return path / _DEFAULT_NAME
    return path
