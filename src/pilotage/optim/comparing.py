"""Compare two optimizer plans: which differences need a new compilation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pilotage.errors import OptionError
from pilotage.optim.rule import Group, OptimizerPlan


def changed_constants(compiled: OptimizerPlan, wanted: OptimizerPlan) -> list[str]:
    """The differences that need a new compilation; empty if new values are enough."""
    return list(_differences(compiled, wanted))


def with_values_of(compiled: OptimizerPlan, wanted: OptimizerPlan) -> OptimizerPlan:
    """The compiled plan with the values of another one; raises if they differ in more than values."""
    if differences := changed_constants(compiled, wanted):
        raise OptionError(
            f"These parts of the optimizer are compiled into the program and cannot change: {', '.join(differences)}. "
            "Mark them as variable before compiling, or destroy() and compile again."
        )
    groups = zip(compiled.groups, wanted.groups, strict=True)
    return replace(
        compiled,
        groups=tuple(replace(group, values=other.values) for group, other in groups),
        loss_scaling=wanted.loss_scaling,
        max_gradient_norm=wanted.max_gradient_norm,
    )


def _differences(compiled: OptimizerPlan, wanted: OptimizerPlan) -> Iterator[str]:
    if compiled.accumulation_type != wanted.accumulation_type:
        yield f"accumulation_type from {compiled.accumulation_type} to {wanted.accumulation_type}"
    for name in sorted({*compiled.constants, "max_gradient_value"}):
        before, after = getattr(compiled, name), getattr(wanted, name)
        if before != after:
            yield f"{name} from {before!r} to {after!r}"
    if len(compiled.groups) != len(wanted.groups):
        yield f"number of groups from {len(compiled.groups)} to {len(wanted.groups)}"
        return
    for index, (before, after) in enumerate(zip(compiled.groups, wanted.groups, strict=True)):
        for difference in _group_differences(before, after):
            yield f"group {index}: {difference}"


def _group_differences(compiled: Group, wanted: Group) -> Iterator[str]:
    if compiled.parameters != wanted.parameters:
        yield f"parameters from {list(compiled.parameters)} to {list(wanted.parameters)}"
    if compiled.rule != wanted.rule:
        yield f"rule from {compiled.rule} to {wanted.rule}"
    for name in sorted(compiled.constants & wanted.values.keys()):
        if compiled.values[name] != wanted.values[name]:
            yield f"{name} from {compiled.values[name]!r} to {wanted.values[name]!r}"
