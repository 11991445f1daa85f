"""Detects whether the user has written to a module's tensors, by torch's version counter of each tensor.

Writes through ``.data`` are not counted, nor are writes to tensors that were made in inference mode.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter, ne

from torch import Tensor

from pilotage.torch_private import DisableTorchFunctionSubclass

_VERSION = attrgetter("_version")
"""Reads a tensor's version; called for many tensors at every call, so it has to be quick."""

_AT_A_TIME = 8
"""How many tensors `some_edited` checks."""


class HostVersions:
    """The versions of some tensors when the host was last in sync with the device."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._tensors: list[Tensor] = []
        self._noted: list[int] = []
        self._next = 0

    def follow(self, tensors: Mapping[str, Tensor]) -> None:
        """Watch these tensors from now on; they are in sync with the device."""
        counted = {name: tensor for name, tensor in tensors.items() if not tensor.is_inference()}
        self._names, self._tensors = list(counted), list(counted.values())
        self.note()

    def note(self) -> None:
        """Note that the tensors are in sync with the device, whatever wrote to them."""
        # Reading the version of a tensor whose newer values are on the device would fetch them.
        with DisableTorchFunctionSubclass():
            self._noted = list(map(_VERSION, self._tensors))

    def note_some(self, names: Collection[str]) -> None:
        """Note that some of the tensors are in sync with the device."""
        with DisableTorchFunctionSubclass():
            for position, name in enumerate(self._names):
                if name in names:
                    self._noted[position] = _VERSION(self._tensors[position])

    def edited(self) -> list[str]:
        """The names of all tensors that were written to since they were noted."""
        with DisableTorchFunctionSubclass():
            present = list(map(_VERSION, self._tensors))
        if present == self._noted:
            return []
        return [name for name, differs in zip(self._names, map(ne, present, self._noted), strict=True) if differs]

    def some_edited(self) -> list[str]:
        """Like `edited` for a few tensors, different ones at every call: the cost does not grow with the model."""
        start = self._next if self._next < len(self._tensors) else 0
        self._next = stop = start + _AT_A_TIME
        with DisableTorchFunctionSubclass():
            present = list(map(_VERSION, self._tensors[start:stop]))
        return self.edited() if present != self._noted[start:stop] else []
