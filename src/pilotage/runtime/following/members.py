"""The parts, parameters and buffers of a module, compared with those that were captured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

_KINDS = ("_modules", "_parameters", "_buffers")


class Members:
    """The members of a module and of all its parts."""

    def __init__(self, module: nn.Module) -> None:
        parts = list(module.named_modules())
        tables = [(path, vars(part)[kind]) for kind in _KINDS for path, part in parts]
        self._tables: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = [
            (path, table, dict(table)) for path, table in tables if table
        ]
        """The present tables, each with its contents at the capture."""
        self.live = [table.values() for _, table, _ in self._tables]
        """All present members."""
        self.probe = next((each for each in module.parameters() if each.is_floating_point()), None)
        """One parameter, whose type is compared: a change of type changes all parameters in place."""
        self.type = None if self.probe is None else self.probe.dtype

    def difference(self) -> str | None:
        """The names of the members that were added, removed or replaced; None if none were."""
        for path, table, noted in self._tables:
            for name in {**noted, **table}:
                if table.get(name) is not noted.get(name):
                    change = "was removed" if name not in table else "was replaced" if name in noted else "was added"
                    return f"{path}.{name} {change}" if path else f"{name} {change}"
        if self.probe is not None and self.probe.dtype != self.type:
            return f"The weights have become {self.probe.dtype} instead of {self.type}"
        return None
