"""Casts to float8."""

from __future__ import annotations

from habana_frameworks.torch.hpex.operations.float8 import cast_to_fp8_v2 as cast_to_fp8_v2
