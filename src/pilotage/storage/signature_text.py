"""The signature of a module's forward as plain data."""

from __future__ import annotations

import inspect
from typing import Any

from pilotage.program.signature import CallSignature
from pilotage.storage.plain_data import array, flag, invalid_value, text, well_formed


def signature_to_data(signature: CallSignature) -> list[list[Any]]:
    """The signature as plain data; defaults that are not plain values become None."""
    return [
        [name, parameter.kind.name, parameter.default is not inspect.Parameter.empty, _plain(parameter.default)]
        for name, parameter in signature.parameters.items()
    ]


def signature_from_data(data: list[list[Any]]) -> CallSignature:
    """Restore a signature from plain data."""
    with well_formed("The signature of forward in the file"):
        entries = [array(entry, "a parameter of forward", 4) for entry in array(data, "the signature of forward")]
        return CallSignature(inspect.Signature([_parameter(*entry) for entry in entries]))


def _parameter(name: Any, kind: Any, has_default: Any, default: Any) -> inspect.Parameter:
    if default is not None and not isinstance(default, (bool, int, float, str)):
        raise invalid_value(f"the default of {name!r}", default, "a number, a text, true, false or none")
    return inspect.Parameter(
        text(name, "a parameter of forward"),
        inspect._ParameterKind[text(kind, "the kind of a parameter")],
        default=default if flag(has_default, "has_default") else inspect.Parameter.empty,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else None
