"""The parts, parameters and buffers of a module, compared with those that were captured."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import is_
from typing import Any

import torch
from torch import nn

from pilotage.torch_private import DisableTorchFunctionSubclass

_KINDS = ("_modules", "_parameters", "_buffers")


class Members:
    """The members of a module and of all its parts."""

    def __init__(self, module: nn.Module) -> None:
        parts = list(module.named_modules())
        tables = [(path, vars(part)[kind]) for kind in _KINDS for path, part in parts]
        self._tables: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = [
            (path, table, dict(table)) for path, table in tables if table
        ]
        """The tables as they are, and as they were."""
        self._live = [table for _, table, _ in self._tables]
        self._noted = self._present()
        self._probe = next((each for each in module.parameters() if each.is_floating_point()), None)
        """A change of type changes all parameters in place, so one of them is looked at."""
        self._type = self._present_type()

    def differ(self) -> bool:
        """Whether members have come, gone or been replaced, or the weights have another type."""
        present = self._present()
        if len(present) != len(self._noted) or not all(map(is_, present, self._noted)):
            return True
        return self._probe is not None and self._present_type() != self._type

    def _present_type(self) -> torch.dtype | None:
        # Otherwise a parameter whose newer values are on the device handles the question in Python.
        with DisableTorchFunctionSubclass():
            return None if self._probe is None else self._probe.dtype

    def difference(self) -> str:
        """What differs, by name."""
        for path, table, noted in self._tables:
            for name in {**noted, **table}:
                if table.get(name) is not noted.get(name):
                    change = "was removed" if name not in table else "was replaced" if name in noted else "was added"
                    return f"{path}.{name} {change}" if path else f"{name} {change}"
        return f"The weights have become {self._present_type()} instead of {self._type}"

    def _present(self) -> list[Any]:
        return list(chain.from_iterable([table.values() for table in self._live]))
