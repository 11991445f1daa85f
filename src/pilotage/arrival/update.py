"""One update by the optimizer's own rule: torch's implementation if it has one, otherwise the published formula.

Written apart from the rules of `pilotage.optim`, so that a mistake in either shows as a difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from pilotage.optim.adam import AdamRule
from pilotage.optim.lamb import LambRule
from pilotage.optim.own_step.rule import OwnStepRule
from pilotage.optim.rmsprop import RmspropRule
from pilotage.optim.rule import Group, OptimizerPlan, UpdateRule
from pilotage.optim.sgd import SgdRule
from pilotage.program.layout import Slot


class UnknownRule(Exception):
    """The arrival check has no reference for this optimizer."""


@torch.no_grad()
def update_eagerly(
    plan: OptimizerPlan,
    parameters: dict[str, Tensor],
    gradients: Mapping[str, Tensor],
    slots: Mapping[Slot, Tensor],
    updates: float,
) -> dict[Slot, Tensor]:
    """Replace the parameters by updated ones; returns the optimizer's new state, as far as torch keeps it.

    Parameters whose state is in another process, which has another stage or shard, are removed: that process compares
    them.
    """
    trained = {name for group in plan.groups for name in group.parameters}
    gradients = _clipped({name: each for name, each in gradients.items() if name in trained}, plan.max_gradient_norm)
    gradients = _limited(gradients, plan.max_gradient_value)
    found: dict[Slot, Tensor] = {}
    states: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for slot, tensor in slots.items():
        states[slot.parameter][slot.name] = tensor
    for group in plan.groups:
        changed = {name: parameters[name] for name in group.parameters if name in gradients}
        elsewhere = [name for name in changed if group.rule.slots and not states[name]]
        for name in elsewhere:
            del changed[name], parameters[name]
        new = _updated(group, changed, gradients, states, updates)
        for name in group.parameters:
            kept = states[name]
            if name in new:
                parameters[name], kept = new[name]
            found.update({Slot(slot, name): tensor for slot, tensor in kept.items()})
    return found


def _clipped(gradients: Mapping[str, Tensor], limit: float) -> Mapping[str, Tensor]:
    if limit == float("inf") or not gradients:
        return gradients
    norm = sum(float(torch.linalg.vector_norm(each, dtype=torch.float64)) ** 2 for each in gradients.values()) ** 0.5
    factor = min(1.0, limit / (norm + 1e-6))
    return {name: each * factor for name, each in gradients.items()}


def _limited(gradients: Mapping[str, Tensor], limit: float) -> Mapping[str, Tensor]:
    if limit == float("inf"):
        return gradients
    limited = {name: nn.Parameter(torch.zeros_like(each)) for name, each in gradients.items()}
    for name, each in gradients.items():
        limited[name].grad = each.clone()
    nn.utils.clip_grad_value_(limited.values(), limit)
    return {name: each.grad for name, each in limited.items() if each.grad is not None}


_State = dict[str, Tensor]
"""What an optimizer keeps for one parameter."""


def _updated(
    group: Group,
    parameters: Mapping[str, Tensor],
    gradients: Mapping[str, Tensor],
    states: Mapping[str, _State],
    updates: float,
) -> dict[str, tuple[Tensor, _State]]:
    """The updated parameters of a group and their states, in the types that they had."""
    rule = group.rule
    if isinstance(rule, OwnStepRule):
        return {
            name: _by_own_step(rule, group, parameters[name], gradients[name], states[name], updates)
            for name in parameters
        }
    owns = {name: _own(parameter, gradients[name], states[name]) for name, parameter in parameters.items()}
    wide = {name: _in_type_of(owns[name], states[name]) for name in parameters}
    optimizer = _torchs_own(rule, list(owns.values()), group.values) if owns else None
    if optimizer is not None:
        if updates or not isinstance(rule, SgdRule):
            for name, own in owns.items():
                optimizer.state[own].update({"step": torch.tensor(float(updates)), **wide[name]})
        # One step for the whole group: making an optimizer for each parameter takes longer than its arithmetic.
        optimizer.step()
        # Without momentum torch keeps no buffer.
        wide = {
            name: {
                slot: optimizer.state[own][slot] for slot in wide[name] if optimizer.state[own].get(slot) is not None
            }
            for name, own in owns.items()
        }
    else:
        for name, own in owns.items():
            _update_by_formula(rule, own, wide[name], updates, group.values)
    return {
        name: (
            own.detach().to(parameters[name].dtype),
            {slot: each.to(states[name][slot].dtype) for slot, each in wide[name].items()},
        )
        for name, own in owns.items()
    }


def _by_own_step(
    rule: OwnStepRule, group: Group, parameter: Tensor, gradient: Tensor, kept: _State, updates: float
) -> tuple[Tensor, _State]:
    new, found = rule.in_eager(parameter, gradient, kept, group.values, is_first=updates == 0)
    return new.to(parameter.dtype), found


def _own(parameter: Tensor, gradient: Tensor, kept: _State) -> nn.Parameter:
    """A copy of a parameter with its gradient, in the widest type of its state."""
    kind = parameter.dtype
    for tensor in kept.values():
        kind = torch.promote_types(kind, tensor.dtype)
    own = nn.Parameter(parameter.to(kind, copy=True))
    own.grad = gradient.to(kind)
    return own


def _in_type_of(own: nn.Parameter, kept: _State) -> _State:
    return {slot: tensor.to(own.device, own.dtype, copy=True) for slot, tensor in kept.items()}


def _update_by_formula(
    rule: UpdateRule, own: nn.Parameter, state: _State, updates: float, values: Mapping[str, float]
) -> None:
    formula = _FORMULAS.get(type(rule))
    if formula is None:
        raise UnknownRule(f"the arrival check has no reference for {type(rule).__name__}")
    assert own.grad is not None
    if rule.maximize:
        own.grad.neg_()
    formula(rule, own, own.grad, state, updates, values)


def _torchs_own(
    rule: UpdateRule, parameters: list[nn.Parameter], values: Mapping[str, float]
) -> torch.optim.Optimizer | None:
    """torch's optimizer for a rule; None if torch does not have the variant."""
    common: dict[str, Any] = {"lr": values["lr"], "maximize": rule.maximize, "foreach": False}
    common["weight_decay"] = values["weight_decay"]
    match rule:
        case SgdRule():
            momentum = values["momentum"] if rule.momentum else 0.0
            nesterov = rule.nesterov and momentum > 0
            dampening = values["dampening"] if rule.momentum else 0.0
            return torch.optim.SGD(parameters, momentum=momentum, dampening=dampening, nesterov=nesterov, **common)
        case AdamRule() if rule.bias_correction:
            kind = torch.optim.AdamW if rule.decoupled_weight_decay else torch.optim.Adam
            betas = (values["beta1"], values["beta2"])
            return kind(parameters, betas=betas, eps=values["eps"], amsgrad=rule.amsgrad, **common)
        case RmspropRule() if not rule.tensorflow:
            momentum = values["momentum"] if rule.momentum else 0.0
            return torch.optim.RMSprop(
                parameters,
                alpha=values["alpha"],
                eps=values["eps"],
                momentum=momentum,
                centered=rule.centered,
                **common,
            )
        case _:
            return None


def _adam(
    rule: AdamRule, w: Tensor, g: Tensor, state: dict[str, Tensor], updates: float, values: Mapping[str, float]
) -> None:
    """Adam without the correction of the moments' bias."""
    if rule.decoupled_weight_decay:
        w *= 1 - values["lr"] * values["weight_decay"]
    else:
        g = g + values["weight_decay"] * w
    first, second = _moments(g, state, values)
    if rule.amsgrad:
        second = state["max_exp_avg_sq"] = torch.maximum(state["max_exp_avg_sq"], second)
    w -= values["lr"] * first / (second.sqrt() + values["eps"])


def _lamb(
    rule: LambRule, w: Tensor, g: Tensor, state: dict[str, Tensor], updates: float, values: Mapping[str, float]
) -> None:
    """Algorithm 2 of "Large Batch Optimization for Deep Learning" (2020), with a limit on the norm of the weights."""
    first, second = _moments(g, state, values)
    if rule.bias_correction:
        first = first / (1 - values["beta1"] ** (updates + 1))
        second = second / (1 - values["beta2"] ** (updates + 1))
    direction = first / (second.sqrt() + values["eps"]) + values["weight_decay"] * w
    length = min(float(w.double().norm()), values["max_weight_norm"])
    size = float(direction.double().norm())
    w -= values["lr"] * (length / size if length > 0 and size > 0 else 1.0) * direction


def _rmsprop(
    rule: RmspropRule, w: Tensor, g: Tensor, state: dict[str, Tensor], updates: float, values: Mapping[str, float]
) -> None:
    """TensorFlow's RMSprop: eps inside the root, and the learning rate inside the momentum."""
    g = g + values["weight_decay"] * w
    alpha = values["alpha"]
    variance = state["square_avg"] = alpha * state["square_avg"] + (1 - alpha) * g * g
    if rule.centered:
        mean = state["grad_avg"] = alpha * state["grad_avg"] + (1 - alpha) * g
        variance = variance - mean * mean
    step = values["lr"] * g / (variance + values["eps"]).sqrt()
    if rule.momentum:
        step = state["momentum_buffer"] = values["momentum"] * state["momentum_buffer"] + step
    w -= step


def _moments(g: Tensor, state: dict[str, Tensor], values: Mapping[str, float]) -> tuple[Tensor, Tensor]:
    beta1, beta2 = values["beta1"], values["beta2"]
    first = state["exp_avg"] = beta1 * state["exp_avg"] + (1 - beta1) * g
    second = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1 - beta2) * g * g
    return first, second


_FORMULAS: Mapping[type[UpdateRule], Callable[..., None]] = {AdamRule: _adam, LambRule: _lamb, RmspropRule: _rmsprop}
"""The variants that torch does not have."""
