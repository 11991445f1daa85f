"""Folders for building custom kernels of the card, which the emulation does not have."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import refusing

_REASON = (
    "custom TPC kernels are built against the vendor's libraries. Write the operation in PyTorch, or use the card."
)
get_include_dir = refusing("lib_utils.get_include_dir", _REASON)
get_lib_dir = refusing("lib_utils.get_lib_dir", _REASON)
