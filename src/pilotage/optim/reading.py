"""Read a torch optimizer as the plan that the engine compiles."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping

import torch

from pilotage.errors import OptionError
from pilotage.optim.families import FAMILIES, Family, GroupSettings, Refinements, family_of
from pilotage.optim.own_step.reading import own_step_groups
from pilotage.optim.rule import Group, OptimizerPlan
from pilotage.torch_private import DisableTorchFunctionSubclass, step_post_hooks, step_pre_hooks


def read_optimizer(
    optimizer: torch.optim.Optimizer,
    names: Mapping[int, str],
    *,
    refinements: Refinements | None = None,
    like: OptimizerPlan | None = None,
    may_be_empty: bool = False,
) -> OptimizerPlan:
    """The plan of an optimizer for the parameters in ``names``, which maps their ``id`` to their name.

    ``refinements`` are settings beyond torch's own; with them, a ``step`` of the optimizer's own gives no warning.
    ``like`` is a compiled plan whose constants and variables to keep. ``may_be_empty`` allows a plan for no parameter.
    """
    if refinements is None:
        _warn_of_python_code(optimizer)
        refinements = Refinements()
    _warn_of_unknown_parameters(optimizer, names)
    return read_again(optimizer, names, refinements, like=like, may_be_empty=may_be_empty)


def read_again(
    optimizer: torch.optim.Optimizer,
    names: Mapping[int, str],
    refinements: Refinements,
    *,
    like: OptimizerPlan | None = None,
    may_be_empty: bool = False,
) -> OptimizerPlan:
    """The current plan of an optimizer that was read before, without warnings."""
    captures_step = refinements.own_steps and not has_rule(optimizer)
    groups: list[Group] = []
    for settings in optimizer.param_groups:
        known = _trained_names(settings, names)
        if known and captures_step:
            held = {names[id(parameter)]: parameter for parameter in settings["params"] if id(parameter) in names}
            earlier = _groups_of(known, like)
            groups += own_step_groups(optimizer, settings, {name: held[name] for name in known}, earlier)
        elif known:
            first = like.groups[len(groups)] if like is not None and len(groups) < len(like.groups) else None
            constants = _constants(family_of(optimizer), settings, refinements, first)
            groups.append(read_group(optimizer, settings, known, refinements, constants))
    if not groups and not may_be_empty:
        raise OptionError(
            f"The {type(optimizer).__name__} optimizer holds no parameter of the module that requires a gradient. "
            "Create it from the parameters() of the wrapped module."
        )
    return OptimizerPlan(
        groups=tuple(groups),
        loss_scaling=refinements.loss_scaling,
        max_gradient_norm=refinements.max_gradient_norm,
        max_gradient_value=refinements.max_gradient_value,
        accumulation_type=refinements.accumulation_type,
        constants=refinements.plan_constants if like is None else like.constants,
    )


def _groups_of(names: tuple[str, ...], plan: OptimizerPlan | None) -> list[Group]:
    """The groups of a plan that have exactly these parameters, in the order in which they were read."""
    if plan is None:
        return []
    found = [group for group in plan.groups if set(group.parameters) <= set(names)]
    return found if sum(len(group.parameters) for group in found) == len(names) else []


def _trained_names(settings: GroupSettings, names: Mapping[int, str]) -> tuple[str, ...]:
    # requires_grad does not need weights that are up to date with the device.
    with DisableTorchFunctionSubclass():
        return tuple(names[id(p)] for p in settings["params"] if id(p) in names and p.requires_grad)


def read_group(
    optimizer: torch.optim.Optimizer,
    settings: GroupSettings,
    parameters: tuple[str, ...],
    refinements: Refinements,
    constants: frozenset[str] | None = None,
) -> Group:
    """One parameter group of an optimizer, for the parameters with these names."""
    family = family_of(optimizer)
    if settings.get("differentiable"):
        raise OptionError("differentiable=True cannot be compiled: autograd does not see updates. Leave it out.")
    if constants is None:
        constants = _constants(family, settings, refinements, None)
    return Group(
        rule=family.choices(optimizer, settings, constants, refinements),
        parameters=parameters,
        values=family.values(settings),
        constants=constants,
    )


def runs_python_code(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the optimizer overrides ``step``, which a program does not run."""
    # torch wraps `step` of each instantiated class, so compare the functions below the wrappers.
    return inspect.unwrap(type(optimizer).step) is not inspect.unwrap(family_of(optimizer).optimizer.step)


def has_rule(optimizer: torch.optim.Optimizer) -> bool:
    """Whether one of the engine's rules computes what the optimizer's step() does."""
    return any(isinstance(optimizer, family.optimizer) for family in FAMILIES) and not runs_python_code(optimizer)


def code_around_steps(optimizer: torch.optim.Optimizer) -> str | None:
    """Python code that the user has put around the steps of one optimizer, which a program does not run."""
    for hooks, kind in ((step_pre_hooks(optimizer), "pre"), (step_post_hooks(optimizer), "post")):
        if hooks:
            hook = next(iter(hooks.values()))
            return f"the step {kind}-hook {getattr(hook, '__qualname__', repr(hook))}"
    own = vars(optimizer).get("step")
    # torch's schedulers wrap it too.
    if own is not None and inspect.unwrap(getattr(own, "__func__", own)) is not inspect.unwrap(type(optimizer).step):
        return f"its own step(), {getattr(own, '__qualname__', repr(own))}"
    return None


def _constants(
    family: Family, settings: GroupSettings, refinements: Refinements, earlier: Group | None
) -> frozenset[str]:
    if earlier is not None:
        return earlier.constants.intersection(family.values(settings))
    if refinements.constants is not None:
        return refinements.constants.intersection(family.values(settings))
    return family.constants(settings)


def _warn_of_python_code(optimizer: torch.optim.Optimizer) -> None:
    family = family_of(optimizer)
    if runs_python_code(optimizer):
        warnings.warn(
            f"{type(optimizer).__name__} overrides step(). A program does not run it: parameters are updated "
            f"as {family.optimizer.__name__} does.",
            stacklevel=3,
        )


def _warn_of_unknown_parameters(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> None:
    unknown = sum(id(p) not in names for settings in optimizer.param_groups for p in settings["params"])
    if unknown:
        warnings.warn(
            f"{unknown} of the optimizer's parameters are not parameters of the module and will not be updated.",
            stacklevel=3,
        )
