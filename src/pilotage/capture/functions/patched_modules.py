"""Modules of torch that ask for a tensor's value in forward, patched while a capture runs.

- Batch normalisation with ``momentum=None`` reads the number of batches as a Python number. Here it stays in its
  tensor.
- Transformers look into a mask to find out whether it is causal, only to choose a faster kernel. Here they use the mask
  as it is.
- Conversions such as ``self.to(x.device)`` exchange whole tensors if these have no data. Here they assign to ``.data``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pilotage.capture.kept_memory import conversions_by_data
from pilotage.torch_private import AnyBatchNorm, input_check

_HINTS: Mapping[type[nn.Module], tuple[int, str]] = {
    nn.TransformerEncoder: (3, "is_causal"),
    nn.TransformerDecoder: (6, "tgt_is_causal"),
}
"""The position and name of forward's causal argument."""


@contextmanager
def patched_modules(module: nn.Module) -> Iterator[None]:
    """Make the batch norms, transformers and conversions in a module capturable inside the block."""
    with (
        _batch_norms_counting_in_tensors(module),
        _transformers_without_causal_check(module),
        conversions_by_data(module),
    ):
        yield


@contextmanager
def _batch_norms_counting_in_tensors(module: nn.Module) -> Iterator[None]:
    """Make such submodules capturable inside the block."""
    parts = [part for part in module.modules() if isinstance(part, AnyBatchNorm) and _asks_for_the_count(part)]
    for part in parts:
        part.__dict__["forward"] = partial(_forward, part)
    try:
        yield
    finally:
        for part in parts:
            part.__dict__.pop("forward", None)


def _asks_for_the_count(part: AnyBatchNorm) -> bool:
    own_forward = "forward" in part.__dict__ or type(part).forward is not AnyBatchNorm.forward
    return part.momentum is None and part.track_running_stats and not own_forward


def _forward(part: AnyBatchNorm, x: Tensor) -> Tensor:
    count, mean, variance = part.num_batches_tracked, part.running_mean, part.running_var
    if not part.training or count is None or mean is None or variance is None:
        return AnyBatchNorm.forward(part, x)
    input_check(part)(x)
    # With a momentum of 1, torch replaces the running statistics by those of this batch.
    own_mean, own_variance = torch.zeros_like(mean), torch.zeros_like(variance)
    result = functional.batch_norm(x, own_mean, own_variance, part.weight, part.bias, True, 1.0, part.eps)
    with torch.no_grad():
        count.add_(1)
        share = (1 / count).to(mean.dtype)
        mean.lerp_(own_mean, share)
        variance.lerp_(own_variance, share)
    return result


@contextmanager
def _transformers_without_causal_check(module: nn.Module) -> Iterator[None]:
    """Make such submodules capturable inside the block."""
    with ExitStack() as handles:
        for part in module.modules():
            if any(type(part).forward is kind.forward for kind in _HINTS):
                handles.enter_context(part.register_forward_pre_hook(_answer, prepend=True, with_kwargs=True))
        yield


def _answer(part: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    place, name = next(hint for kind, hint in _HINTS.items() if type(part).forward is kind.forward)
    if len(args) > place:
        return (*args[:place], bool(args[place]), *args[place + 1 :]), kwargs
    return args, {**kwargs, name: bool(kwargs.get(name))}
