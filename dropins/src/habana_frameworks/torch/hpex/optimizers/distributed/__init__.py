"""Optimizers for torch's distributed optimizers, which pass gradients to ``step``."""

from __future__ import annotations

from habana_frameworks.torch.hpex.optimizers.adamw import FunctionalAdamW

FusedAdamW = FunctionalAdamW
