"""Findings about results: what instances exchange, the precision of the arithmetic, and the saved weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pilotage.proof.findings.finding import Finding
from pilotage.proof.records import Fields, ProcessRecord, ScriptRecord
from pilotage.proof.weights import distance

__all__ = ["computed_types", "no_gradient_exchange", "precision_not_as_asked", "weights_not_saved"]

_NARROW = ("float16", "bfloat16")
_TRAINED = ("present", "trained")


def no_gradient_exchange(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """Several processes train, each on its own."""
    processes = [each for each in after.trained if each.header["size"] > 1 and each.header["stage"] is None]
    if len({each.rank for each in processes}) < 2:
        return
    apart = _apart(processes)
    exchanged = sum(each.fields["exchanges"] for process in processes for each in process.updates)
    # Equal weights after different losses: something exchanges gradients that is not watched, such as all_gather.
    if apart is None or (not apart and (exchanged or _losses_differ(processes))):
        return
    how = "their weights differ after the last update" if apart else "no gradients were summed"
    yield Finding(
        name="no-gradient-exchange",
        where=processes[0].updates[-1].line,
        message=f"{len(processes)} processes train independently: {how}.",
        remedy="Wrap the model in DistributedDataParallel; with PopTorch take popdist.poptorch.Options(); with "
        "pilotage.training pass distributed=True.",
    )


def _apart(processes: list[ProcessRecord]) -> bool | None:
    """Whether processes have different weights after the last update that all have digested; None if unknown."""
    steps = set.intersection(*(set(each.weights) for each in processes)) - {0}
    if not steps:
        return None
    last = max(steps)
    first = processes[0]
    shapes = [each["shape"] for each in first.weights[last]]
    if any([each["shape"] for each in other.weights[last]] != shapes for other in processes[1:]):
        return None  # Each process has a part of the model.
    moved = _distance(first.weights[last], first.weights.get(0, []))
    return any(_distance(first.weights[last], other.weights[last]) > 1e-3 * moved for other in processes[1:])


def _losses_differ(processes: list[ProcessRecord]) -> bool:
    """Whether processes train on different samples, to judge by their losses."""
    pairs = (
        (left, right)
        for other in processes[1:]
        for left, right in zip(processes[0].updates, other.updates, strict=False)
    )
    losses = (both for left, right in pairs for both in zip(left.losses, right.losses, strict=False))
    return any(abs(left - right) > 1e-3 * max(abs(left), abs(right)) for left, right in losses)


def _distance(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> float:
    return math.sqrt(sum(distance(*pair) ** 2 for pair in zip(left, right, strict=False)))


def precision_not_as_asked(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """Reduced precision that was requested but not used, or the reverse."""
    process = after.first
    computed = computed_types(process)
    if not computed:
        return
    narrow = {name for name in computed if name in _NARROW}
    original = set() if before is None else {name for name in computed_types(before.first) if name in _NARROW}
    asked = [each for each in process.named("asked") if _asks(each)]
    for each in asked:
        if each["type"] not in narrow and (before is None or not _ignores_too(before, each)):
            found = ", ".join(sorted(computed))
            yield Finding(
                name="precision-not-as-asked",
                where=each["line"],
                message=f"{each['type']} is requested here, but the products of a step were computed in {found}.",
                remedy="Request it for the device that computes and the module that is trained.",
            )
    if before is None:
        return
    yield from _changed_types(process, before.first)
    wrapper = next((each["line"] for each in process.summary.get("wrappers", ()) if each["trains"]), None)
    trains = wrapper or process.updates[0].line
    for kind in sorted(narrow - original):
        line = next((each["line"] for each in asked if each["type"] == kind), None)
        yield Finding(
            name="precision-not-as-asked",
            where=line or trains,
            message=f"The products of a step are computed in {kind}{' from here on' if line else ''}, but those of the "
            "original are not.",
            remedy=f"Compute in the original's type, or prove against an original that asks for {kind} too.",
        )
    lost = _asked_and_used(before.first) if not narrow and not asked else None
    if lost is not None:
        yield Finding(
            name="precision-not-as-asked",
            where=trains,
            message=f"The original asks for {lost} and computes most of its products in it, but this script computes "
            f"its products in {', '.join(sorted(computed))}.",
            remedy=f"Ask for {lost} here too, or prove against an original that computes as this script does.",
        )


def _changed_types(process: ProcessRecord, original: ProcessRecord) -> Iterator[Finding]:
    """A type that changes from one update to the next, although that of the original does not."""
    for number in range(1, min(len(process.types), len(original.types))):
        before, now = process.types[number - 1 : number + 1]
        if None in (before, now) or before == now or original.types[number - 1] != original.types[number]:
            continue
        yield Finding(
            name="precision-not-as-asked",
            where=process.updates[number].line,
            message=f"Up to update {number} the products of a step were computed in {before}, and from update "
            f"{number + 1} on in {now}; those of the original stay in {original.types[number]}.",
            remedy="Request the type in every step, and cast no weights between steps.",
        )
        return


def _asked_and_used(process: ProcessRecord) -> str | None:
    """The narrow type that a script asks for, if it computes most of its products in it."""
    computed = computed_types(process)
    asked = [each["type"] for each in process.named("asked") if _asks(each)]
    return next((kind for kind in asked if 2 * computed.get(kind, 0) > sum(computed.values())), None)


def computed_types(process: ProcessRecord) -> dict[str, int]:
    """In which types the products of a step were computed."""
    program = next(process.named("program"), None)
    found: dict[str, int] | None = process.first("computed_in") if program is None else program["computed_in"]
    return found or {}


def _asks(event: Any) -> bool:
    if event["what"] == "autocast":
        return bool(event["enabled"] and event["trains"] and event["type"] in _NARROW)
    return bool(event["what"] in ("type", "discarded"))


def _ignores_too(before: ScriptRecord, event: Any) -> bool:
    asked = [each for each in before.first.named("asked") if _asks(each)]
    return any(each["type"] == event["type"] for each in asked) and event["type"] not in computed_types(before.first)


def weights_not_saved(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """What is saved at the end does not hold the trained weights."""
    saved = _saved(after)
    found = list(_not_usual(_late(after), before))
    for event in found:
        what = "the weights from before training" if event["holds"] == "initial" else "weights that were not trained"
        when = "What is saved here was replaced, and" if event.get("replaced") else "What is saved here"
        yield Finding(
            name="weights-not-saved",
            where=event["line"],
            message=f"{when} holds {what}.",
            remedy="Save the state of the module that was trained, taken after training.",
        )
    if _saves(after) or found or not _is_whole(after) or (before is not None and _saves_others(before)):
        return
    early = [event for event in saved if not event["after"]]
    for event in early:
        yield Finding(
            name="weights-not-saved",
            where=event["line"],
            message="Weights are saved before training, but not after it.",
            remedy="Save the state of the module after training.",
        )
    if not early and before is not None and _saves(before):
        process = after.first
        wrapper = next((each["line"] for each in process.summary.get("wrappers", ()) if each["trains"]), None)
        what = "other weights" if saved else "nothing"
        yield Finding(
            name="weights-not-saved",
            where=wrapper or process.updates[-1].line,
            message=f"The original saves the trained weights, but this script saves {what}.",
            remedy="Save the state of the module after training.",
        )


def _saved(run: ScriptRecord) -> list[Fields]:
    """Where weights are saved."""
    return [event for process in run.trained for event in process.named("saved") if event["holds"] is not None]


def _late(run: ScriptRecord) -> list[Fields]:
    """What is saved after the first update by a line that never saves what was trained; each line and file once."""
    saved = _saved(run)
    good = {event["line"] for event in saved if event["holds"] in _TRAINED}
    late = [event for event in saved if event["after"] and (event["line"] not in good or event.get("replaced"))]
    return list({(event["line"], event.get("file")): event for event in late}.values())


def _not_usual(late: list[Fields], before: ScriptRecord | None) -> Iterator[Fields]:
    """What the original does not save in the same way; a copy of a model may stay as it was, or change slowly."""
    usual = [] if before is None else _late(before)
    files = set() if before is None else {event.get("file") for event in _saved(before)}
    # A file of the original's name is compared with that file only, and comes first.
    for event in sorted(late, key=lambda each: each.get("file") not in files):
        alike = [each for each in usual if _are_alike(each, event)]
        if event.get("file") in files:
            alike = [each for each in alike if each.get("file") == event.get("file")]
        if alike:
            usual.remove(alike[0])
        else:
            yield event


def _are_alike(left: Fields, right: Fields) -> bool:
    return all(left.get(each) == right.get(each) for each in ("holds", "tensors", "replaced"))


def _saves(run: ScriptRecord) -> bool:
    return any(event["holds"] in _TRAINED for event in _saved(run))


def _saves_others(run: ScriptRecord) -> bool:
    """Whether a script was watched to its end, and saves only weights that were not trained."""
    return _is_whole(run) and bool(_saved(run)) and not _saves(run)


def _is_whole(run: ScriptRecord) -> bool:
    return all(process.reached_its_end for process in run.trained)
