"""New weights of few bits, rounded to the nearest or at random.

An update smaller than half a step of the weight's type is lost when it is rounded to the nearest. Rounded up or down
at random, in proportion to what is left over, it counts in the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

_DROPPED_BITS = {torch.float16: 13, torch.bfloat16: 16}
"""Bits of a float32's mantissa that the type does not have."""


@contextmanager
def rounded(parameters: Sequence[Tensor], *, at_random: bool) -> Iterator[list[Tensor]]:
    """Targets for an update in place; where rounding is at random they are wider copies, stored at the end."""
    if not at_random:
        yield list(parameters)
        return
    wide = [parameter.float() if parameter.dtype in _DROPPED_BITS else parameter for parameter in parameters]
    yield wide
    for parameter, target in zip(parameters, wide, strict=True):
        if target is not parameter:
            parameter.copy_(round_at_random(target, parameter.dtype))


def round_at_random(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Float32 values in a narrower type: each becomes one of its two neighbours, the nearer one more often."""
    step = 1 << _DROPPED_BITS[dtype]
    noise = torch.randint_like(values, step, dtype=torch.int32)
    bits = (values.view(torch.int32) + noise) & -step
    return bits.view(torch.float32).to(dtype)
