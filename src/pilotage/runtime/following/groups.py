"""Which changes of an optimizer's parameter groups a program can follow in the middle of training."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pilotage.errors import OptionError
from pilotage.optim.own_step.rule import OwnStepRule
from pilotage.optim.rmsprop import RmspropRule
from pilotage.optim.rule import Group, OptimizerPlan
from pilotage.optim.sgd import SgdRule


def refuse_lost_state(present: OptimizerPlan, wanted: OptimizerPlan, once_trained: Collection[str]) -> None:
    """Raise if training could not continue as in eager PyTorch.

    Parameters may be frozen at any time. One that joins starts with an empty state, which is right if its rule does not
    count updates for all parameters together, and if it has no state from before it was frozen.
    """
    before, after = _groups(present), _groups(wanted)
    for name, group in after.items():
        if name not in before:
            if _counts_for_all(group) or (group.rule.slots and name in once_trained):
                raise OptionError(
                    f"The parameter {name} was added to what the {group.rule.kind} optimizer trains, or thawed. Its "
                    "own number of updates differs from that of the others, and a program counts them together. Freeze "
                    "it again, or wrap the module again with pilotage.training and a new optimizer, with fresh "
                    "state."
                )
        elif lost := set(group.rule.slots) - set(before[name].rule.slots):
            raise OptionError(
                f"With the changed settings the {group.rule.kind} optimizer keeps {sorted(lost)[0]} for {name}, which "
                "it did not keep before. Choose these settings before the first call, or wrap the module again with "
                "pilotage.training and a new optimizer."
            )


def _groups(plan: OptimizerPlan) -> Mapping[str, Group]:
    return {name: group for group in plan.groups for name in group.parameters}


def _counts_for_all(group: Group) -> bool:
    match group.rule:
        case OwnStepRule() | RmspropRule():
            return False
        case SgdRule():
            return bool(group.rule.momentum and group.values["dampening"])
        case _:
            return True
