"""The hooks of a module and of its parameters, compared with those that were captured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from pilotage.torch_private import DisableTorchFunctionSubclass, backward_hooks, post_accumulate_grad_hooks

_KINDS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OF_PARAMETERS = {"gradient": backward_hooks, "accumulated gradient": post_accumulate_grad_hooks}


class Hooks:
    """The hooks that run around the forward and backward of a module and its submodules."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self.count = RemovableHandle.next_id
        """The number of hooks registered in this process so far, for any module: torch counts them."""
        tables = [(name, table) for name, table in self._tables() if table]
        self._noted = {name: list(table.values()) for name, table in tables}
        self.live = [table.values() for _, table in tables]
        """The present contents of the hook tables that were not empty, which shows removed hooks."""

    def differ(self) -> bool:
        """Whether hooks of this module were added or removed."""
        self.count = RemovableHandle.next_id
        return {name: list(table.values()) for name, table in self._tables() if table} != self._noted

    def _tables(self) -> Iterator[tuple[str, Mapping[int, Any]]]:
        for path, part in self._module.named_modules():
            yield from ((f"{path} {kind}", vars(part)[kind]) for kind in _KINDS)
        # Reading the hooks of a parameter whose newer values are on the device would fetch them.
        with DisableTorchFunctionSubclass():
            tables = [
                (f"{name} {kind}", hooks_of(parameter))
                for name, parameter in self._module.named_parameters()
                for kind, hooks_of in _OF_PARAMETERS.items()
            ]
        yield from ((name, table) for name, table in tables if table)
