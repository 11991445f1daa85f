"""Options as plain data, so that they can lie in a file beside a compiled model."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch

from poptorch import enums
from poptorch.enums import ConnectionType
from poptorch.options import Options

__all__ = ["compiled_settings", "options_from_data", "options_to_data"]

_FLAGS = (
    "_source_location_excludes",
    "_relax_optimizer_checks",
    "_show_compilation_progress_bar",
    "_module_namescope_enabled",
)
_COMPILED = ("automaticLossScalingSettings.enabled", "enableStochasticRounding")


def options_to_data(options: Options) -> dict[str, Any]:
    """Every setting but the execution strategy, which a compiled program has already followed."""
    return {
        "own": _to_data(options._values),
        "popart": _to_data(options._Popart.options),
        "training": _to_data(options.Training._values),
        "tensor_locations": _to_data(options.TensorLocations._values),
        "flags": {name: _to_data(getattr(options, name)) for name in _FLAGS},
    }


def compiled_settings(options: Options) -> dict[str, Any]:
    """The settings that a program has built in; all others may change without compiling it again."""
    told = options._Popart.options
    return {
        "replication_factor": options.replication_factor,
        **options.Training._values,
        **{name: bool(told.get(name, False)) for name in _COMPILED},
    }


def options_from_data(data: dict[str, Any]) -> Options:
    """Open options with these settings; what was compiled for no device is meant to run on one now."""
    options = Options()
    for name, value in _from_data(data["own"]).items():
        options._values[name] = value
    options.deleteIfExists("ipu_version")
    if options.connection_type == ConnectionType.Never:
        options.connectionType(ConnectionType.Always)
    options._Popart.options.update(_from_data(data["popart"]))
    options.Training._values.update(_from_data(data["training"]))
    options.TensorLocations._values.update(_from_data(data["tensor_locations"]))
    for name, value in data["flags"].items():
        setattr(options, name, _from_data(value))
    return options


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


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        return [_from_data(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    match kind:
        case "enum":
            name, member = content
            return getattr(enums, name)[member]
        case "dtype":
            return getattr(torch, content)
        case _:
            return {_from_data(key): _from_data(item) for key, item in content}
