"""Intel's transformer engine for float8 training, which the emulation does not have."""

from __future__ import annotations

from habana_frameworks._emulation.refusals import missing_module

raise missing_module(
    "intel_transformer_engine", "float8 training needs the vendor's package. Train in bfloat16 with torch.autocast."
)
