"""The module that is executed: the user's own, with its plain attributes as they were when it was wrapped."""

from __future__ import annotations

from torch import nn

__all__ = ["snapshot"]


def snapshot(module: nn.Module) -> nn.Module:
    """A copy that shares parameters, buffers, submodules and hooks with a module, but not its plain attributes."""
    # Not copy.copy: it uses the pickling protocol, which some classes refuse.
    twin = object.__new__(type(module))
    twin.__dict__.update(module.__dict__)
    return twin
