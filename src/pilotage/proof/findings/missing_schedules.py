"""Learning rate schedules that the original has and the port lacks."""

from __future__ import annotations

from collections.abc import Sequence

from pilotage.proof.records import ScriptRecord, Update

__all__ = ["first_other_rate"]


def first_other_rate(after: ScriptRecord, before: ScriptRecord) -> tuple[Update, Update] | None:
    """The first updates of the original and of the port whose rates differ, if only those of the original change.

    Also None if the port has any schedule: another rule checks whether that is applied.
    """
    if any(each.summary.get("schedules") for each in after.trained):
        return None
    count = min(before.steps, after.steps)
    ours, theirs = before.first.updates[:count], after.first.updates[:count]
    # Some ports make a new optimizer for each rate.
    is_constant = not any(_differ(each.rates, theirs[0].rates) for each in theirs)
    if not is_constant or not _change(ours):
        return None
    pairs = zip(ours, theirs, strict=True)
    return next(((left, right) for left, right in pairs if _differ(left.rates, right.rates)), None)


def _change(updates: Sequence[Update]) -> bool:
    """Whether any optimizer has applied a rate that differs from its first one."""
    first: dict[int | None, list[float]] = {}
    return any(_differ(each.rates, first.setdefault(each.fields.get("optimizer"), each.rates)) for each in updates)


def _differ(left: Sequence[float], right: Sequence[float]) -> bool:
    """Whether rates differ; if the groups of parameters differ too, only those of the first groups are compared."""
    if not left or not right:
        return False
    if len(left) != len(right):
        left, right = left[:1], right[:1]
    return any(abs(a - b) > 1e-6 * max(abs(a), abs(b)) for a, b in zip(left, right, strict=True))
