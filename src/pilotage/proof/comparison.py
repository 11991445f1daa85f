"""The comparison of two runs, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pilotage.proof.findings.results import computed_types
from pilotage.proof.records import ScriptRecord
from pilotage.proof.steps import Step, losses_of, steps_of
from pilotage.proof.tolerance import UNITS, Tolerance, unit_of
from pilotage.proof.weights import match_weights, total_distance

__all__ = ["Comparison", "Verdict", "compare", "noise_of", "unit_of_runs"]


class Verdict(StrEnum):
    """How two runs compare."""

    SAME = "same"
    DIVERGED = "diverged"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What the comparison of two runs says."""

    verdict: Verdict
    steps: int
    """How many updates were compared."""

    step: int | None = None
    """The update with the first difference, counted from 1."""

    quantity: str | None = None
    """The first quantity that differs."""

    values: tuple[str, str] | None = None
    """It, in both runs."""

    reason: str | None = None
    before_losses: Sequence[float] = ()
    after_losses: Sequence[float] = ()
    allowed: Sequence[float] = ()
    """The relative difference of losses that is tolerated at each update."""

    weights: dict[int, float] = field(default_factory=dict)
    """How far the weights were apart, relative to the distance that they moved, where they were digested."""

    rounding: str = "float32"
    """The type whose rounding was tolerated."""

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        match self.verdict:
            case Verdict.SAME:
                return "same"
            case Verdict.DIVERGED if self.step == 1:
                return "diverged at the first step"
            case Verdict.DIVERGED:
                return f"same until step {(self.step or 1) - 1}, then diverged"
            case Verdict.NOT_COMPARABLE:
                return "not comparable"


def unit_of_runs(before: ScriptRecord, after: ScriptRecord) -> str:
    """The type whose rounding explains differences of two runs: the narrowest that a fifth of the products have."""
    found = []
    for run in (before, after):
        types = computed_types(run.first)
        total = sum(types.values())
        found += [name for name, count in types.items() if count >= total / 5]
    return unit_of(found)


def noise_of(type_name: str) -> float:
    """The size of the errors in a repetition that shows the effect of rounding."""
    return UNITS[type_name]


def compare(before: ScriptRecord, after: ScriptRecord, tolerance: Tolerance | None = None) -> Comparison:
    """Compare two runs, update by update."""
    tolerance = tolerance or Tolerance(unit_of_runs(before, after))
    left, right = steps_of(before), steps_of(after)
    count = min(len(left), len(right))
    left, right = left[:count], right[:count]
    losses = losses_of(left, right)
    apart = dict(weight_distances(before, after))
    plain = Comparison(
        verdict=Verdict.SAME,
        steps=count,
        before_losses=losses[0],
        after_losses=losses[1],
        allowed=[tolerance.of_loss(step) for step in range(1, count + 1)],
        weights=apart,
        rounding=tolerance.type,
    )
    if (reason := _objection(before, after, left, right, tolerance)) is not None:
        return replace(plain, verdict=Verdict.NOT_COMPARABLE, reason=reason)
    end = _first_end(losses, apart, tolerance)
    if end is None:
        return plain
    step, quantity, values = _first_cause(left, right, end)
    return replace(plain, verdict=Verdict.DIVERGED, step=step, quantity=quantity, values=values)


def _objection(
    before: ScriptRecord, after: ScriptRecord, left: Sequence[Step], right: Sequence[Step], tolerance: Tolerance
) -> str | None:
    """Why two runs cannot be compared; None if they can."""
    if not left:
        return "one of the scripts made no update"
    if (reason := _unequal_start(before, after, tolerance)) is not None:
        return reason
    ours, theirs = left[0].samples, right[0].samples
    if ours is not None and theirs is not None and ours != theirs:
        return f"an update of BEFORE takes {ours} samples and one of AFTER {theirs}{_why(after)}"
    draws = any(each["draws_random_numbers"] for each in after.first.named("program"))
    parts = (left[0].parts * before.processes, right[0].parts * after.processes)
    gap = relative(left[0].mean_loss, right[0].mean_loss, abs(left[0].mean_loss))
    if draws and all(parts) and parts[0] != parts[1] and gap > tolerance.of_loss(1):
        return (
            f"the model draws random numbers (dropout), and an update of AFTER has {parts[1]} parts and one of BEFORE "
            f"{parts[0]}, so they draw different ones; prove it without dropout"
        )
    if not any(ours.parts and theirs.parts for ours, theirs in zip(left, right, strict=True)):
        names = [name for name, steps in (("BEFORE", left), ("AFTER", right)) if not any(each.parts for each in steps)]
        if not any(step <= len(left) for step, _ in weight_distances(before, after)):
            return f"neither losses nor weights were seen in both scripts (no losses in {' and '.join(names)})"
    return None


def _why(after: ScriptRecord) -> str:
    """Which options make the batch of an update larger."""
    program = next(after.first.named("program"), None)
    factors = (
        {}
        if program is None
        else {
            "gradient accumulation": program["gradient_accumulation"],
            "replicas": program["replicas"],
            "instances": program["instances"],
        }
    )
    if after.processes > 1:
        factors["processes"] = after.processes
        factors.pop("instances", None)
    named = [f"{name} {count}" for name, count in factors.items() if count > 1]
    return f" ({' × '.join(named)})" if named else ""


def _unequal_start(before: ScriptRecord, after: ScriptRecord, tolerance: Tolerance) -> str | None:
    ours, theirs = before.first.weights.get(0), after.first.weights.get(0)
    if not ours or not theirs:
        return None
    pairs = match_weights(theirs, ours)
    if len(pairs) < len(theirs):
        return (
            f"AFTER trains {len(theirs)} tensors of weights, and only {len(pairs)} of them have the shape of BEFORE's"
        )
    size = math.sqrt(sum(each["norm"] ** 2 for _, each in pairs))
    apart = total_distance(pairs)
    if apart > 8 * UNITS[tolerance.type] * size + 1e-12:
        worst = max(pairs, key=lambda pair: total_distance([pair]))[0]
        return (
            f"the scripts begin with different weights ({worst['name']}, for example): seed torch directly before the "
            "model is made, in both scripts"
        )
    return None


def weight_distances(before: ScriptRecord, after: ScriptRecord) -> Iterator[tuple[int, float]]:
    """How far the weights are apart, relative to their distance from the start, where both have digests."""
    ours, theirs = before.first.weights, after.first.weights
    if 0 not in ours or 0 not in theirs:
        return
    names = {id(each): place for place, each in enumerate(ours[0])}
    places = {each["name"]: names[id(other)] for each, other in match_weights(theirs[0], ours[0])}
    for step in sorted(set(ours) & set(theirs) - {0}):
        pairs = [(each, ours[step][places[each["name"]]]) for each in theirs[step] if _fits(each, places, ours[step])]
        moved = total_distance((ours[0][places[each["name"]]], other) for each, other in pairs)
        if pairs:
            yield step, total_distance(pairs) / moved if moved else math.inf if total_distance(pairs) else 0.0


def _fits(each: dict[str, Any], places: dict[str, int], offered: list[dict[str, Any]]) -> bool:
    place = places.get(each["name"])
    return place is not None and place < len(offered) and offered[place]["shape"] == each["shape"]


def relative(left: float, right: float, scale: float) -> float:
    """How far two numbers are apart, relative to their size; a loss that vanishes is measured by the first one."""
    if math.isnan(left) and math.isnan(right):
        return 0.0
    gap = abs(left - right)
    if not math.isfinite(gap):
        return 0.0 if left == right else math.inf
    size = max(abs(left), abs(right), 1e-2 * scale)
    return gap / size if size else 0.0


def _first_end(
    losses: tuple[Sequence[float], Sequence[float]], weights: dict[int, float], tolerance: Tolerance
) -> tuple[int, str, tuple[str, str]] | None:
    """The first update whose loss or weights differ by more than rounding explains."""
    scale = abs(losses[0][0])
    for step, (left, right) in enumerate(zip(*losses, strict=True), 1):
        if relative(left, right, scale) > tolerance.of_loss(step):
            return step, "loss", (f"{left:.7g}", f"{right:.7g}")
        if step in weights and weights[step] > tolerance.of_weights(step):
            return step, "weights", ("", f"apart by {100 * weights[step]:.2g} % of the distance that they have moved")
    return None


def _first_cause(
    left: Sequence[Step], right: Sequence[Step], end: tuple[int, str, tuple[str, str]]
) -> tuple[int, str, tuple[str, str]]:
    """The first quantity that differs, up to the update whose results do."""
    for ours, theirs in zip(left[: end[0]], right[: end[0]], strict=True):
        if ours.indices is not None and theirs.indices is not None and ours.indices != theirs.indices:
            return ours.number, "samples", (_some(ours.indices), _some(theirs.indices))
        if ours.content is not None and theirs.content is not None and not _close(ours.content, theirs.content):
            return ours.number, "values of the samples", (_numbers(ours.content), _numbers(theirs.content))
        differ = ours.rates and theirs.rates and not _close(ours.rates, theirs.rates, 1e-6)
        # The rate of an update shows in the weights after it, and in the losses of later ones.
        if differ and (end[1] == "weights" or ours.number < end[0]):
            return ours.number, "learning rate", (_numbers(ours.rates), _numbers(theirs.rates))
    return end


def _close(left: Sequence[float], right: Sequence[float], allowed: float = 1e-2) -> bool:
    if len(left) != len(right):
        return allowed > 1e-3 or left[:1] == right[:1]
    return all(relative(a, b, 0.0) <= allowed for a, b in zip(left, right, strict=True))


def _some(indices: Sequence[int]) -> str:
    return ", ".join(map(str, indices[:6])) + (", …" if len(indices) > 6 else "")


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{each:.6g}" for each in values[:4])
