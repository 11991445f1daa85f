"""Batch normalisation whose running statistics are the plain average of all batches (``momentum=None``).

torch asks for the number of batches as a Python number there, which a captured program cannot know. For the time of a
capture such parts get a forward of their own, which keeps the number in its tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def averages_in_tensors(module: nn.Module) -> Iterator[None]:
    """Let such parts of a module be captured inside of the block."""
    parts = [part for part in module.modules() if isinstance(part, _BatchNorm) and _asks_for_the_count(part)]
    for part in parts:
        part.__dict__["forward"] = partial(_forward, part)
    try:
        yield
    finally:
        for part in parts:
            part.__dict__.pop("forward", None)


def _asks_for_the_count(part: _BatchNorm) -> bool:
    own_forward = "forward" in part.__dict__ or type(part).forward is not _BatchNorm.forward
    return part.momentum is None and part.track_running_stats and not own_forward


def _forward(part: _BatchNorm, x: Tensor) -> Tensor:
    count, mean, variance = part.num_batches_tracked, part.running_mean, part.running_var
    if not part.training or count is None or mean is None or variance is None:
        return _BatchNorm.forward(part, x)
    part._check_input_dim(x)
    # With a momentum of one, torch leaves the statistics of this batch alone in place of the running ones.
    own_mean, own_variance = torch.zeros_like(mean), torch.zeros_like(variance)
    result = functional.batch_norm(x, own_mean, own_variance, part.weight, part.bias, True, 1.0, part.eps)
    with torch.no_grad():
        count.add_(1)
        share = (1 / count).to(mean.dtype)
        mean.lerp_(own_mean, share)
        variance.lerp_(own_variance, share)
    return result
