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
    """What runs around the forward and backward of a module and its parts."""

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._count = RemovableHandle.next_id
        self._noted = self._present()
        self._filled = [(table, list(table.values())) for _, table in self._tables() if table]

    def may_differ(self) -> bool:
        """Whether hooks have come or gone, of any module; asked at every call, so it has to be quick."""
        # torch numbers all hooks of a process; that some have gone shows in the tables that had any.
        if RemovableHandle.next_id != self._count:
            return True
        return any(list(table.values()) != noted for table, noted in self._filled)

    def differ(self) -> bool:
        """Whether hooks of this module have come or gone."""
        self._count = RemovableHandle.next_id
        return self._present() != self._noted

    def _present(self) -> dict[str, list[Any]]:
        return {name: list(table.values()) for name, table in self._tables() if table}

    def _tables(self) -> Iterator[tuple[str, Mapping[int, Any]]]:
        for path, part in self._module.named_modules():
            yield from ((f"{path} {kind}", vars(part)[kind]) for kind in _KINDS)
        # Asking a parameter whose newer values are on the device would fetch them.
        with DisableTorchFunctionSubclass():
            tables = [
                (f"{name} {kind}", hooks_of(parameter))
                for name, parameter in self._module.named_parameters()
                for kind, hooks_of in _OF_PARAMETERS.items()
            ]
        yield from ((name, table) for name, table in tables if table)
