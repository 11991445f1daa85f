"""The quick comparison before every call that detects whether a module may have changed."""

from __future__ import annotations

from itertools import chain
from operator import call, is_

from torch import nn
from torch.utils.hooks import RemovableHandle

from pilotage.runtime.following.attributes import Attributes
from pilotage.runtime.following.hooks import Hooks
from pilotage.runtime.following.members import Members
from pilotage.torch_private import DisableTorchFunctionSubclass


class QuickLook:
    """Compares flat lists of a module's present members with the captured ones, without a loop in Python.

    What has changed, and whether that matters for the program, is found out only after this has said that something
    differs.
    """

    def __init__(self, module: nn.Module) -> None:
        self.members, self.hooks, self.attributes = Members(module), Hooks(module), Attributes(module)
        self._live = [*self.members.live, *self.hooks.live]
        self._noted = list(chain.from_iterable(self._live))

    def differs(self) -> bool:
        """Whether anything may have changed."""
        members, attributes, present = self.members, self.attributes, list(chain.from_iterable(self._live))
        if len(present) != len(self._noted) or not all(map(is_, present, self._noted)):
            return True
        if RemovableHandle.next_id != self.hooks.count:
            return True
        # Otherwise a parameter whose newer values are on the device handles the question in Python.
        with DisableTorchFunctionSubclass():
            if members.probe is not None and members.probe.dtype is not members.type:
                return True
        try:
            return attributes.live != attributes.noted or list(map(call, attributes.readers)) != attributes.read
        except Exception:
            # Tensors and arrays, for instance, do not compare to one truth value.
            return True
