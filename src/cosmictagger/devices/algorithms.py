"""Which algorithms cuDNN may choose from."""

from __future__ import annotations

import torch

PROPOSALS = 4
"""Algorithms tried for each convolution: cuDNN names the likely ones first, and trying more on whole pictures takes seconds."""


def try_some_algorithms() -> None:
    """Let cuDNN measure the algorithms that it proposes first for each convolution, and keep the best."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = PROPOSALS
