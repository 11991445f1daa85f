"""Optimizers for sparse gradients, which the emulated card does not have."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import refusing

_REASON = "the emulated card has no sparse tensors. Use FusedSGD or FusedAdagrad with dense gradients."


class SparseSGD:
    """Not available."""

    forward = staticmethod(refusing("SparseSGD", _REASON))


class SparseAdagrad:
    """Not available."""

    forward = staticmethod(refusing("SparseAdagrad", _REASON))
