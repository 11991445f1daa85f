"""Dumps of the card's state."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import refusing

dump_device_state_and_terminate = refusing(
    "dump_device_state_and_terminate", "the emulated card has no state that could be written."
)
