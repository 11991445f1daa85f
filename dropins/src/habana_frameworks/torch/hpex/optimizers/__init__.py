"""Optimizers that the card runs as one kernel; here they update one parameter after the other."""

from __future__ import annotations

from habana_frameworks.torch.hpex.normalization.clipping import FusedClipNorm as FusedClipNorm
from habana_frameworks.torch.hpex.optimizers.adamw import FusedAdamW as FusedAdamW
from habana_frameworks.torch.hpex.optimizers.lamb import FusedLamb as FusedLamb
from habana_frameworks.torch.hpex.optimizers.sgd import FusedSGD as FusedSGD
