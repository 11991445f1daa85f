"""Updates weights from gradients.

Stochastic rounding: an update smaller than half a step of a narrow type is lost when rounded to nearest. Rounded up or
down at random, in proportion to the remainder, it is preserved on average. The random numbers are a function of the
update, the weight's name and its position, so that replicas and instances, whose streams differ, round alike and keep
equal weights.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from pilotage.capture.loss_scaling import adjust_loss_scale, loss_scale
from pilotage.optim.own_step.rule import OwnStepRule
from pilotage.optim.rule import OptimizerPlan, Value
from pilotage.optim.workspace import open_workspace, plain_workspace
from pilotage.options.clipping import NO_LIMIT
from pilotage.program.layout import Counter, Slot, VariableValue, group_values, shared_value
from pilotage.program.precision import without_autocast
from pilotage.torch_private import foreach_norm

_DROPPED_BITS = {torch.float16: 13, torch.bfloat16: 16}
"""Mantissa bits of float32 that the type lacks."""

_BITS, _LOW_BITS = 32, 0xFFFFFFFF
_FACTORS = (0x7FEB352D, 0x31848BAB)
"""Odd, and small enough that their product with 32 bits fits in int64."""


@torch.no_grad()
def update(
    plan: OptimizerPlan,
    parameters: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    slots: Mapping[Slot, Tensor],
    counters: Mapping[Counter, Tensor],
    variables: Mapping[VariableValue, Tensor],
    *,
    clips: bool = True,
) -> None:
    """Update the parameters that have a gradient, in place, and count the update."""
    updates = counters[Counter.UPDATES]
    with without_autocast(updates.device.type):
        scale = loss_scale(plan, counters, variables)
        if plan.automatic_loss_scaling and gradients:
            gradients = adjust_loss_scale(counters[Counter.LOSS_SCALE], scale, gradients)
        gradients = _unscaled(gradients, scale)
        if clips:
            gradients = _clipped(gradients, shared_value(plan, "max_gradient_norm", variables))
        gradients = _bounded(gradients, plan.max_gradient_value)
        for position, group in enumerate(plan.groups):
            trained = [name for name in group.parameters if name in gradients]
            for names in _portions(trained, parameters, group.rule.slots, slots):
                with (
                    rounded(
                        {name: parameters[name] for name in names}, updates if plan.stochastic_rounding else None
                    ) as targets,
                    _slots_on_device(names, parameters, group.rule.slots, slots) as brought,
                ):
                    found = [gradients[name] for name in names]
                    if isinstance(group.rule, OwnStepRule):
                        work = plain_workspace(targets, found, brought)
                    else:
                        work = open_workspace(targets, found, brought, maximize=group.rule.maximize)
                    group.rule.apply(work, updates, group_values(group, position, variables))
        updates.add_(1)


def _portions(
    names: Sequence[str], parameters: Mapping[str, Tensor], rule_slots: Sequence[str], slots: Mapping[Slot, Tensor]
) -> Iterator[list[str]]:
    """What to update at once: everything or, if slots are on the host, at most as much as the largest parameter."""
    waits = any(slots[Slot(slot, name)].device != parameters[name].device for name in names for slot in rule_slots)
    most = max((parameters[name].numel() for name in names), default=0)
    portion: list[str] = []
    for name in names:
        if waits and portion and sum(parameters[each].numel() for each in (*portion, name)) > most:
            yield portion
            portion = []
        portion.append(name)
    if portion:
        yield portion


@contextmanager
def _slots_on_device(
    names: Sequence[str], parameters: Mapping[str, Tensor], rule_slots: Sequence[str], slots: Mapping[Slot, Tensor]
) -> Iterator[dict[str, list[Tensor]]]:
    """The slots on the parameters' devices; those on the host are copied over, and back at the end."""
    brought = {slot: [slots[Slot(slot, name)].to(parameters[name].device) for name in names] for slot in rule_slots}
    yield brought
    for slot, tensors in brought.items():
        for name, tensor in zip(names, tensors, strict=True):
            if tensor is not slots[Slot(slot, name)]:
                slots[Slot(slot, name)].copy_(tensor)


def _unscaled(gradients: Mapping[str, Tensor], scale: Value) -> Mapping[str, Tensor]:
    if isinstance(scale, float) and scale == 1.0:
        return gradients
    return {name: gradient / scale for name, gradient in gradients.items()}


def _clipped(gradients: Mapping[str, Tensor], limit: Value) -> Mapping[str, Tensor]:
    """Clip the norm of all gradients together, as torch.nn.utils.clip_grad_norm_ does."""
    if not gradients or (isinstance(limit, float) and limit == NO_LIMIT):
        return gradients
    norms = foreach_norm(list(gradients.values()))
    kind = torch.float64 if any(norm.dtype == torch.float64 for norm in norms) else torch.float32
    total = torch.linalg.vector_norm(torch.stack([norm.to(kind) for norm in norms]))
    factor = torch.clamp(limit / (total + 1e-6), max=1.0)
    return {name: gradient * factor.to(gradient.dtype) for name, gradient in gradients.items()}


def _bounded(gradients: Mapping[str, Tensor], limit: float) -> Mapping[str, Tensor]:
    """Limit each element of the gradients, as torch.nn.utils.clip_grad_value_ does."""
    if not gradients or limit == NO_LIMIT:
        return gradients
    return {name: gradient.clamp(-limit, limit) for name, gradient in gradients.items()}


@contextmanager
def rounded(parameters: Mapping[str, Tensor], update: Tensor | None) -> Iterator[list[Tensor]]:
    """Targets for an in-place update; given its number, narrow ones are float32 copies, then rounded at random."""
    if update is None:
        yield list(parameters.values())
        return
    wide = [each.float() if each.dtype in _DROPPED_BITS else each for each in parameters.values()]
    yield wide
    for (name, parameter), target in zip(parameters.items(), wide, strict=True):
        if target is not parameter:
            parameter.copy_(round_at_random(target, parameter.dtype, update, name))


def round_at_random(values: Tensor, dtype: torch.dtype, update: Tensor, name: str) -> Tensor:
    """Round float32 values to a narrower type: each becomes one of its two neighbours, the nearer one more often."""
    step = 1 << _DROPPED_BITS[dtype]
    noise = (_random_bits(values, update, name) >> (_BITS - _DROPPED_BITS[dtype])).to(torch.int32)
    bits = (values.view(torch.int32) + noise) & -step
    return bits.view(torch.float32).to(dtype)


def _random_bits(values: Tensor, update: Tensor, name: str) -> Tensor:
    """32 bits for each value of a weight, different in each update: a hash, the same in every process."""
    places = torch.arange(values.numel(), dtype=torch.int64, device=values.device).view(values.shape)
    key = _mixed(_mixed(update.to(torch.int64) & _LOW_BITS) ^ zlib.crc32(name.encode()))
    return _mixed(_mixed(places & _LOW_BITS) ^ key)


def _mixed(bits: Tensor) -> Tensor:
    """A permutation of 32-bit numbers in which each bit depends on all others."""
    for factor in _FACTORS:
        bits = ((bits ^ (bits >> 16)) * factor) & _LOW_BITS
    return bits ^ (bits >> 15)
