"""Options as plain data, for the file of a compiled model."""

from __future__ import annotations

import math
import os
from enum import Enum
from typing import Any

import torch

from pilotage.engine import plain_data
from poptorch import enums
from poptorch._logging import logger
from poptorch.enums import ConnectionType
from poptorch.options import Options

__all__ = ["compiled_settings", "options_from_data", "options_to_data"]

_FLAGS = (
    "_source_location_excludes",
    "_relax_optimizer_checks",
    "_show_compilation_progress_bar",
    "_module_namescope_enabled",
)
_PLACES = ("cachePath", "enableEngineCaching", "engineOptions", "log_dir")
"""Options that name a path, or belong to one that does."""
_MOST_MICRO_BATCHES = 1 << 20


def options_to_data(options: Options) -> dict[str, Any]:
    """Every setting but the execution strategy, which is already compiled in."""
    return {
        "own": _to_data(options.update({})),
        "popart": _to_data(options._Popart.options),
        "training": _to_data(options.Training.toDict()),
        "tensor_locations": _to_data(options.TensorLocations.toDict()),
        "flags": {name: _to_data(getattr(options, name)) for name in _FLAGS},
    }


def compiled_settings(options: Options) -> dict[str, Any]:
    """The settings that are compiled into a program; all others can change without compiling it again."""
    popart = options._Popart.settings
    return {
        "replication_factor": options.replication_factor,
        **options.Training.toDict(),
        "automaticLossScalingSettings.enabled": popart.automatic_loss_scaling,
        "enableStochasticRounding": popart.stochastic_rounding,
    }


def options_from_data(data: Any, *, trusted: bool = False) -> Options:
    """Unfrozen options with these settings; a model that was compiled offline runs on a device now.

    Paths in the file are ignored unless it is trusted: where to keep compiled programs and where to write.
    """
    with plain_data.well_formed("The options in the file"):
        return _options_from_data(plain_data.table(data, "the options"), trusted)


def _options_from_data(data: dict[str, Any], trusted: bool) -> Options:
    options = Options()
    groups = {"own": options, "training": options.Training, "tensor_locations": options.TensorLocations}
    for name, group in groups.items():
        group.replace(_checked(group.update({}), data, name, trusted))
    popart = options._Popart.options
    popart.update(_checked(popart, data, "popart", trusted))
    for name, value in plain_data.table(data["flags"], "flags").items():
        if name not in _FLAGS:
            raise plain_data.invalid_value("a flag", name, f"one of {', '.join(_FLAGS)}")
        setattr(options, name, _like(getattr(options, name), _from_data(value), name))
    options.deleteIfExists("ipu_version")
    if options.connection_type == ConnectionType.Never:
        options.connectionType(ConnectionType.Always)
    _check_size(options)
    return options


def _checked(present: dict[str, Any], data: dict[str, Any], name: str, trusted: bool) -> dict[str, Any]:
    """One group of settings in the file: a table whose values have the types of the present ones."""
    settings = _from_data(data[name])
    if not isinstance(settings, dict):
        raise plain_data.invalid_value(f"the options {name!r}", settings, "a table")
    for key, value in settings.items():
        plain_data.text(key, "the name of an option", 256)
        if key in present:
            _like(present[key], value, key)
    return settings if trusted else _without_places(settings)


def _like(present: Any, value: Any, name: str) -> Any:
    if present is not None and not isinstance(value, type(present)):
        raise plain_data.invalid_value(f"the option {name}", value, f"a value of type {type(present).__name__}")
    return value


def _without_places(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without paths; the name of the model becomes part of a path and is checked."""
    kept = {name: value for name, value in settings.items() if name not in _PLACES}
    if dropped := sorted(settings.keys() & {"cachePath", "engineOptions"}):
        logger.info("The options %s in the file are paths of the system that wrote it, and are ignored.", dropped)
    model_name = kept.get("model_name", "")
    if not isinstance(model_name, str) or os.sep in model_name or model_name in ("..", "."):
        raise plain_data.invalid_value("the name of the model", model_name, "a name without path separators")
    return kept


def _check_size(options: Options) -> None:
    """Raise if one call has too many micro-batches, since each of them becomes a step of the schedule."""
    counts = (options.device_iterations, options.replication_factor, options.Training.gradient_accumulation)
    if not all(count >= 1 for count in counts) or math.prod(counts) > _MOST_MICRO_BATCHES:
        raise plain_data.invalid_value(
            "iterations, replicas and accumulation", counts, f"at most {_MOST_MICRO_BATCHES} micro-batches a call"
        )


def _to_data(value: Any) -> Any:
    match value:
        case Enum():
            return {"enum": [type(value).__name__, value.name]}
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case dict():
            return {"pairs": [[_to_data(key), _to_data(item)] for key, item in value.items()]}
        case list() | tuple():
            return [_to_data(item) for item in value]
        case bool() | int() | float() | str() | None:
            return value
    raise TypeError(f"The option value {value!r} cannot be written to a file.")


def _from_data(data: Any, depth: int = 0) -> Any:
    if depth > plain_data.MAXIMUM_DEPTH:
        raise plain_data.invalid_value(
            "an option", "…", f"a value that is nested at most {plain_data.MAXIMUM_DEPTH} deep"
        )
    match data:
        case list():
            return [_from_data(item, depth + 1) for item in plain_data.array(data, "an option")]
        case None | bool() | float():
            return data
        case int():
            return plain_data.integer(data, "an option")
        case str():
            return plain_data.text(data, "an option")
        case {"enum": content} if len(data) == 1:
            name, member = plain_data.array(content, "an option", 2)
            return _enum(name)[member]
        case {"dtype": content} if len(data) == 1:
            return plain_data.dtype(content)
        case {"pairs": content} if len(data) == 1:
            pairs = [plain_data.array(pair, "an option", 2) for pair in plain_data.array(content, "an option")]
            return {_from_data(key, depth + 1): _from_data(item, depth + 1) for key, item in pairs}
    raise plain_data.invalid_value(
        "an option", data, "a plain value, a list, a table, a data type or an enumeration of poptorch"
    )


def _enum(name: Any) -> type[Enum]:
    found = vars(enums).get(plain_data.text(name, "an enumeration"))
    if not isinstance(found, type) or not issubclass(found, Enum):
        raise plain_data.invalid_value("an enumeration", name, "one of poptorch.enums")
    return found
