"""Moving averages of weights."""

from __future__ import annotations

from habana_frameworks.torch.hpex.movingavrg.exponential import FusedEMA as FusedEMA
