"""Optimizers that the card runs as one kernel; here they update one parameter after the other."""

from __future__ import annotations

from torch.optim import Adam as Adam
from torch.optim import AdamW as AdamW

from habana_frameworks.torch.hpex.normalization.clipping import FusedClipNorm as FusedClipNorm
from habana_frameworks.torch.hpex.optimizers.adagrad import FusedAdagrad as FusedAdagrad
from habana_frameworks.torch.hpex.optimizers.adamw import FusedAdamW as FusedAdamW
from habana_frameworks.torch.hpex.optimizers.lamb import FusedLamb as FusedLamb
from habana_frameworks.torch.hpex.optimizers.lars import FusedLars as FusedLars
from habana_frameworks.torch.hpex.optimizers.resource_apply_momentum import (
    FusedResourceApplyMomentum as FusedResourceApplyMomentum,
)
from habana_frameworks.torch.hpex.optimizers.sgd import FusedSGD as FusedSGD
from habana_frameworks.torch.hpex.optimizers.sparse import SparseAdagrad as SparseAdagrad
from habana_frameworks.torch.hpex.optimizers.sparse import SparseSGD as SparseSGD
