"""All rules, in the order in which they are applied."""

from __future__ import annotations

from pilotage.errors import PortingError
from pilotage.porting.rule import Rule
from pilotage.porting.rules.devices import branches, choices, cuda_calls, moves
from pilotage.porting.rules.distributed import data_parallel, process_groups, samplers
from pilotage.porting.rules.hpu import HPU_RULES
from pilotage.porting.rules.popdist import file_names, saving
from pilotage.porting.rules.program import (
    accumulation,
    clipping,
    detaching,
    gradient_scaling,
    identity_loss,
    imports,
    inference_model,
    loaders,
    model_with_loss,
    one_call,
    optimizers,
    options,
    schedulers,
    training_model,
)
from pilotage.porting.rules.refusals import (
    backward_not_reached,
    changing_shape,
    changing_value,
    data_dependent,
    gradient_hooks,
    loss_from_elsewhere,
    loss_from_item,
    manual_gradients,
    model_not_found,
    no_update,
    not_placeable,
    object_input,
    optimizer_closure,
    optimizer_not_found,
    second_backward,
    shifted_accumulation,
    training_elsewhere,
    two_optimizers,
)
from pilotage.porting.target import Target

__all__ = ["RULES", "rule_named", "rules_for"]

RULES: tuple[Rule, ...] = (
    two_optimizers.RULE,
    second_backward.RULE,
    no_update.RULE,
    optimizer_closure.RULE,
    optimizer_not_found.RULE,
    model_not_found.RULE,
    loss_from_elsewhere.RULE,
    loss_from_item.RULE,
    changing_value.RULE,
    changing_shape.RULE,
    data_dependent.RULE,
    manual_gradients.RULE,
    gradient_hooks.RULE,
    shifted_accumulation.RULE,
    object_input.RULE,
    not_placeable.RULE,
    backward_not_reached.RULE,
    training_elsewhere.RULE,
    one_call.RULE,
    model_with_loss.RULE,
    identity_loss.RULE,
    options.RULE,
    optimizers.RULE,
    clipping.RULE,
    accumulation.RULE,
    loaders.RULE,
    training_model.RULE,
    inference_model.RULE,
    schedulers.RULE,
    detaching.RULE,
    gradient_scaling.RULE,
    data_parallel.RULE,
    process_groups.RULE,
    samplers.RULE,
    moves.RULE,
    choices.RULE,
    branches.RULE,
    cuda_calls.RULE,
    saving.RULE,
    file_names.RULE,
    imports.RULE,
    *HPU_RULES,
)
"""Imports come last, because they depend on the edits of the others."""


def rules_for(target: Target) -> tuple[Rule, ...]:
    """The rules of one target."""
    return tuple(rule for rule in RULES if target in rule.targets)


def rule_named(name: str) -> Rule:
    """The rule with this name."""
    for rule in RULES:
        if rule.name == name:
            return rule
    raise PortingError(f"No rule is named {name!r}. Choose one of: {', '.join(sorted(rule.name for rule in RULES))}.")
