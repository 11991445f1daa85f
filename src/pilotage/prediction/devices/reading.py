"""Reads models of devices from files in TOML."""

from __future__ import annotations

import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pilotage.errors import OptionError
from pilotage.options import environment
from pilotage.options.suggestions import did_you_mean
from pilotage.prediction.devices.model import DeviceModel

__all__ = ["device_model", "known_models", "read_model"]

_OWN = Path(__file__).parent


def device_model(given: str) -> DeviceModel:
    """The model by name, or from a file whose path ends with ``.toml``."""
    if given.endswith(".toml"):
        return read_model(Path(given))
    known = known_models()
    if given.lower() not in known:
        raise OptionError(
            f"No device model is named {given!r}.{did_you_mean(given, known)} Choose one of: {', '.join(known)}; or "
            "give the path of a file that ends with .toml."
        )
    return read_model(known[given.lower()])


def known_models() -> dict[str, Path]:
    """The files of all models by name: those of Pilotage, and those in the folder that PILOTAGE_DEVICE_MODELS names."""
    folders = [_OWN]
    if (own := environment.device_models()) is not None:
        if not own.is_dir():
            raise OptionError(f"PILOTAGE_DEVICE_MODELS is {str(own)!r}, which is not a folder.")
        folders.append(own)
    return {path.stem.lower(): path for folder in folders for path in sorted(folder.glob("*.toml"))}


def read_model(path: Path) -> DeviceModel:
    """The model in a file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"The device model {path} cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"The device model {path} is not TOML: {error}.") from None
    try:
        model: DeviceModel = _table(DeviceModel, {"name": path.stem.lower(), **data}, "")
    except _Wrong as error:
        raise OptionError(f"The device model {path} is wrong: {error}.") from None
    if (model.kind == "ipu") != (model.tiles is not None):
        raise OptionError(f"The device model {path} is wrong: a section [tiles] belongs to the kind 'ipu', only there.")
    if model.kind == "card" and model.products is None:
        raise OptionError(f"The device model {path} is wrong: a card needs a section [products].")
    return model


class _Wrong(Exception):
    """A key of a file is unknown, missing or has a wrong value."""


def _table(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise _Wrong(f"{where} is {data!r}, but it must be a section")
    hints = get_type_hints(kind)
    known = {each.name: each for each in fields(kind)}
    for key in data:
        if key not in known:
            inside = f" in [{where}]" if where else ""
            raise _Wrong(f"{key!r}{inside} is unknown.{did_you_mean(key, known)} Allowed are: {', '.join(known)}")
    found = {}
    for name, each in known.items():
        place = f"{where}.{name}" if where else name
        if name in data:
            found[name] = _value(hints[name], data[name], place)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise _Wrong(f"{place} is missing")
    return kind(**found)


def _value(hint: Any, data: Any, where: str) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [each for each in get_args(hint) if each is not type(None)]
    if is_dataclass(hint):
        return _table(hint, data, where)
    if get_origin(hint) is Literal:
        if data not in get_args(hint):
            raise _Wrong(f"{where} is {data!r}. Choose one of: {', '.join(get_args(hint))}")
        return data
    if get_origin(hint) is tuple:
        if not isinstance(data, list) or not all(isinstance(each, str) for each in data):
            raise _Wrong(f"{where} is {data!r}, but it must be a list of sentences")
        return tuple(data)
    if hint is str:
        if not isinstance(data, str):
            raise _Wrong(f"{where} is {data!r}, but it must be a text")
        return data
    return _number(hint, data, where)


def _number(kind: type, data: Any, where: str) -> float | int:
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    if not is_number or data < 0 or data != data or (kind is int and data != int(data)):
        whole = "a whole number" if kind is int else "a number"
        raise _Wrong(f"{where} is {data!r}, but it must be {whole} of at least 0")
    return int(data) if kind is int else float(data)
