"""Differences that follow from a port's own options, and the settings under which the original has them too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pilotage.monitoring.plurals import pluralized
from pilotage.proof.comparison import Comparison, Verdict
from pilotage.proof.records import ScriptRecord
from pilotage.proof.steps import steps_of

__all__ = ["Alignment", "alignment_of", "explanations_of"]


@dataclass(frozen=True, slots=True)
class Alignment:
    """How the original is changed, in its own process, to do what the port's options do."""

    batch_factor: int = 1
    gradient_factor: float = 1.0

    @property
    def settings(self) -> dict[str, Any]:
        """For the watched process."""
        return {"batch_factor": self.batch_factor, "gradient_factor": self.gradient_factor}

    def __str__(self) -> str:
        parts = []
        if self.batch_factor > 1:
            parts.append(f"batches {self.batch_factor} times as large")
        if self.gradient_factor != 1.0:
            parts.append(f"gradients times {self.gradient_factor:g}")
        return " and ".join(parts)


def alignment_of(before: ScriptRecord, after: ScriptRecord) -> Alignment | None:
    """What makes the original's updates equal to the port's; None if they already are, or cannot be."""
    factor = _batch_factor(before, after)
    reduction = _gradient_factor(after)
    if factor == 1 and reduction == 1.0:
        return None
    return Alignment(factor or 1, reduction)


def _batch_factor(before: ScriptRecord, after: ScriptRecord) -> int | None:
    ours, theirs = steps_of(before)[0].samples, steps_of(after)[0].samples
    if not ours or not theirs or theirs % ours:
        return None
    return theirs // ours


def _gradient_factor(after: ScriptRecord) -> float:
    program = next(after.first.named("program"), None)
    if program is None or program["reduction"] != "sum":
        return 1.0
    return float(program["gradient_accumulation"] * program["replicas"] * program["instances"])


def explanations_of(
    before: ScriptRecord, after: ScriptRecord, comparison: Comparison, alignment: Alignment | None
) -> list[str]:
    """What the port's options explain, and what else is worth knowing."""
    found = []
    if alignment is not None:
        found.append(f"BEFORE ran with {alignment} (--align).")
    factor = _batch_factor(before, after)
    if factor is None and comparison.verdict is Verdict.NOT_COMPARABLE and _sizes_differ(before, after):
        found.append("Neither batch size is a multiple of the other: change one of them.")
    elif factor not in (None, 1) and alignment is None and _options_enlarge(after):
        found.append(
            f"AFTER's options make each update {factor} times as large. With --align the original does the same."
        )
    reduction = _gradient_factor(after)
    if reduction != 1.0 and alignment is None:
        found.append(
            f"AFTER sums the gradients of {reduction:g} micro-batches where BEFORE takes their mean: its updates are "
            f"{reduction:g} times as large. With --align the original does the same."
        )
    program = next(after.first.named("program"), None)
    if program is not None and program["device_iterations"] > 1:
        found.append(
            f"A call of AFTER makes {program['device_iterations']} updates; losses are those of each update, even if "
            "the script sees fewer."
        )
    if (schedule := _later_schedule(before, after)) is not None:
        found.append(
            f"BEFORE's {schedule} changes the rate after the compared updates, and AFTER has no schedule: compare more "
            "of them (--steps)."
        )
    for name, run in (("BEFORE", before), ("AFTER", after)):
        if not run.first.weights.get(0):
            found.append(
                f"The weights of {name} were not seen, for example because each process has a part of them: only "
                "losses are compared."
            )
        if unseen := sum(not each.parts for each in steps_of(run)):
            found.append(
                f"The loss of {pluralized(unseen, 'update')} of {name} was not seen, since no backward pass came "
                "before it: for these, only weights are compared."
            )
    for name, run in (("BEFORE", before), ("AFTER", after)):
        if run.steps < _asked(before, after):
            found.append(f"{name} ended on its own after {run.steps} updates.")
    return found


def _options_enlarge(after: ScriptRecord) -> bool:
    """Whether options of a program, or several processes, make updates larger; a script may lose steps instead."""
    program = next(after.first.named("program"), None)
    options = ("gradient_accumulation", "replicas", "instances")
    return after.processes > 1 or (program is not None and any(program[each] > 1 for each in options))


def _later_schedule(before: ScriptRecord, after: ScriptRecord) -> str | None:
    """A schedule of the original that changes the rate only later, if the port has none."""
    if any(each.summary.get("schedules") for each in after.trained):
        return None
    compared = before.first.updates[: min(before.steps, after.steps)]
    if len({tuple(each.rates) for each in compared}) > 1:
        return None
    return next((each["kind"] for each in before.first.summary.get("schedules", ()) if each["changed"]), None)


def _sizes_differ(before: ScriptRecord, after: ScriptRecord) -> bool:
    ours, theirs = steps_of(before)[0].samples, steps_of(after)[0].samples
    return ours is not None and theirs is not None and ours != theirs


def _asked(before: ScriptRecord, after: ScriptRecord) -> int:
    return max(before.steps, after.steps)
