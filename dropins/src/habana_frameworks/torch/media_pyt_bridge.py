"""The media pipeline's bridge, which the emulation does not have."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import missing_module

raise missing_module(__name__, "the vendor's media pipeline decodes pictures on the card. Use torch's DataLoader.")
