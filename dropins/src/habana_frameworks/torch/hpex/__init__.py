"""Habana's fused extensions, implemented with torch's operations."""

from __future__ import annotations

from habana_frameworks.torch.hpex import kernels as kernels
from habana_frameworks.torch.hpex import movingavrg as movingavrg
from habana_frameworks.torch.hpex import normalization as normalization
from habana_frameworks.torch.hpex import operations as operations
from habana_frameworks.torch.hpex import optimizers as optimizers
