"""PT2E quantization for the card, which the emulation does not have."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import missing_module

raise missing_module(__name__, "PT2E quantization is for the card. Use torchao's quantization on the CPU.")
