"""Compiled models as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from pilotage.engine import Permission, StoredModel, environment, plain_data
from pilotage.engine import stored as stored_models
from poptorch._errors import createPoptorchError, require, translated
from poptorch._executor.wrapping import note_training, refuse_second_wrapping
from poptorch._logging import logger
from poptorch._options.text import compiled_settings, options_from_data, options_to_data
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
    with translated():
        extra = {
            "poptorch": __version__,
            "training": executor.trains,
            "options": options_to_data(_with_pinned_tier(executor)),
            "model": type(executor.model).__qualname__,
        }
        stored_models.store(
            executor.engine,
            path,
            with_weights=export_model,
            with_random_streams=save_rng_state,
            extra=json.loads(json.dumps(extra)),
        )


def _with_pinned_tier(executor: PoplarExecutor) -> Options:
    """The options, with the tier if the environment pins one, so that a program read from the file stays in it."""
    options = executor.options.clone()
    if environment.tier() is not None and not options.exists("pilotage_tier"):
        options.runOn(tier=executor.engine.chosen_tier)
    return options


def load(
    filename: str | Path,
    edit_opts_fn: Callable[[Options], Any] | None = None,
    *,
    model: nn.Module | None = None,
    trusted: bool = False,
    allow_operations: Iterable[str] = (),
    max_memory: int | None = None,
) -> PoplarExecutor:
    """Load a saved model, which needs neither its class nor a compilation.

    If an instance of its class is given, ``.model`` is that instance, with the saved weights. Files are not trusted by
    default: their programs may call only operations that compute, besides those of ``allow_operations``
    (``"library::name"``), and may use at most ``max_memory`` bytes, by default the memory of the machine. The program
    of a ``trusted`` file may do anything, and its machine code is used.
    """
    path = Path(filename)
    permission = _permission(trusted, allow_operations, max_memory)
    stored = _with_code_if_trusted(_read(path, permission), trusted, path)
    require(
        stored.weights is not None,
        f"Invalid file {filename}: it was written with export_model=False and contains no model. Wrap the model as "
        "before "
        "and use loadExecutable.",
    )
    with translated():
        options = options_from_data(stored.extra["options"], trusted=trusted)
        module = _module_for(stored, model, path)
    if edit_opts_fn is not None:
        edit_opts_fn(options)
    trains = stored.extra["training"]
    executor = PoplarExecutor(module, options, training=trains, stored=stored)
    _take_over(executor, stored, path, trusted)
    if trains:
        note_training(executor)
    return executor


def load_executable(
    executor: PoplarExecutor,
    filename: str | Path,
    *,
    trusted: bool = False,
    allow_operations: Iterable[str] = (),
    max_memory: int | None = None,
) -> None:
    """Give a wrapped model the program of a file instead of compiling it; checks are those of `load`."""
    if executor.isCompiled():
        raise createPoptorchError("The model is already compiled. Call destroy() before loadExecutable().")
    path = Path(filename)
    permission = _permission(trusted, allow_operations, max_memory)
    stored = _with_code_if_trusted(_read(path, permission), trusted, path)
    kinds = {True: "training", False: "inference"}
    if stored.extra["training"] != executor.trains:
        raise createPoptorchError(
            f"{filename} contains a model for {kinds[stored.extra['training']]}, but this model is for "
            f"{kinds[executor.trains]}."
        )
    _refuse_other_weights(executor.model, stored, path)
    _take_over(executor, stored, path, trusted)


def _permission(trusted: bool, operations: Iterable[str], memory: int | None) -> Permission:
    names = frozenset((operations,) if isinstance(operations, str) else operations)
    wrong = [name for name in names if not isinstance(name, str) or name.count("::") != 1]
    require(not wrong, f'Allowed operations must be names such as "library::name", not {wrong}.')
    require(
        memory is None or (isinstance(memory, int) and memory > 0),
        f"max_memory must be a number of bytes, not {memory!r}.",
    )
    return Permission(trusted=bool(trusted), operations=names, memory=memory)


def _with_code_if_trusted(stored: StoredModel, trusted: bool, path: Path) -> StoredModel:
    if stored.code is None or trusted:
        return stored
    logger.warning(
        "%s contains machine code, which is ignored. If you trust its origin, use load(..., trusted=True).", path
    )
    return replace(stored, code=None)


def _module_for(stored: StoredModel, model: nn.Module | None, path: Path) -> nn.Module:
    if model is None:
        with plain_data.well_formed(str(path)):
            return stored_models.BareModule.of(stored)
    if stored.extra["training"]:
        refuse_second_wrapping(model)
    _refuse_other_weights(model, stored, path)
    assert stored.weights is not None
    stored_models.load_weights(model, stored.weights)
    return model


def _take_over(executor: PoplarExecutor, stored: StoredModel, path: Path, trusted: bool) -> None:
    with translated():
        saved = options_from_data(stored.extra["options"], trusted=trusted)
    if stored.program.trains or stored.program.layout.replica_groups:
        _refuse_other_settings(compiled_settings(saved), compiled_settings(executor.options), path)
    _refuse_other_settings(_anchors(saved), _anchors(executor.options), path)
    with translated():
        executor.adopt(stored)
    if _seed(saved) == _seed(executor.options):
        _continue_random_streams(executor, stored)


def _continue_random_streams(executor: PoplarExecutor, stored: StoredModel) -> None:
    streams, saved = executor.engine.random_streams, stored.random_streams
    if saved is None or not stored.program.draws_random_numbers:
        return
    # Without a seed a program draws from torch's own generator, whose state differs in this process.
    sizes = {state.numel() for state in streams.states}
    if sizes == {state.numel() for state in saved}:
        streams.part_from_torch(saved)
    else:
        logger.warning(
            "The random state in the file is for another type of device: random numbers start from a new state."
        )


def _seed(options: Options) -> int | None:
    return options.random_seed if options.exists("random_seed") else None


def _anchors(options: Options) -> dict[str, Any]:
    return {
        "anchored_tensors": [long_name for long_name, *_ in options.anchored_tensors.values()],
        "enableFloatingPointExceptions": options._Popart.settings.floating_point_checks,
    }


def _refuse_other_settings(compiled: dict[str, Any], wanted: dict[str, Any], path: Path) -> None:
    changed = [f"{name} from {compiled[name]} to {wanted[name]}" for name in compiled if compiled[name] != wanted[name]]
    if changed:
        raise createPoptorchError(
            f"These options are compiled into the program of {path} and cannot change: {', '.join(changed)}. Use the "
            "options that it was compiled with, or compile the model again."
        )


def _refuse_other_weights(module: nn.Module, stored: StoredModel, path: Path) -> None:
    if found := stored_models.differences(module, stored.program):
        raise createPoptorchError(
            f"{path} contains another model ({stored.extra['model']}) than this {type(module).__name__}: "
            f"{'; '.join(found)}."
        )


def _read(path: Path, permission: Permission) -> StoredModel:
    with translated():
        stored = stored_models.read_stored(path, permission)
        with plain_data.well_formed(str(path)):
            plain_data.flag(stored.extra["training"], "training")
            plain_data.text(stored.extra["model"], "the class of the model")
            version = plain_data.text(stored.extra["poptorch"], "the version")
            plain_data.table(stored.extra["options"], "the options")
        if stored.extra["training"] != stored.program.trains:
            raise plain_data.invalid_value("training", stored.extra["training"], "what its program does")
    require(
        version == __version__,
        f"Invalid file {path}: PopTorch version mismatch: it was written by {version}, but this is {__version__}.",
    )
    return stored


def _target(path: Path) -> Path:
    if path.is_dir():
        logger.warning("%s is a directory: the model is saved as %s in it.", path, _DEFAULT_NAME)
        return path / _DEFAULT_NAME
    return path
