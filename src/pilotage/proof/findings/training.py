"""Findings about what trains: wrappers, optimizers, schedules, devices, modes and losses."""

from __future__ import annotations

from collections.abc import Iterator

from pilotage.monitoring.plurals import pluralized
from pilotage.proof.findings.finding import Finding
from pilotage.proof.findings.left_programs import updates_past_program
from pilotage.proof.findings.missing_schedules import first_other_rate
from pilotage.proof.records import ProcessRecord, ScriptRecord

__all__ = [
    "eval_mode_in_training",
    "host_fallback",
    "loss_depends_on_batch_split",
    "loss_root_differs",
    "optimizer_unused",
    "schedule_not_applied",
    "wrapper_lost",
]


def _eager_updates(process: ProcessRecord) -> int:
    return sum(each.is_eager for each in process.updates)


def wrapper_lost(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """The plain module was trained although a wrapper exists or could not be created, perhaps from some update on."""
    for process in after.trained:
        yield from _left_program(process, before)
        wrappers = process.summary.get("wrappers", ())
        eager = _eager_updates(process)
        if not eager or any(each["trains"] and each["calls"] for each in wrappers):
            continue
        for each in wrappers:
            if each["error"] is None and each["kind"].endswith("wrap_in_hpu_graph"):
                continue  # It changes the module itself.
            if each["calls"] or (not each["trains"] and any(other["trains"] for other in wrappers)):
                continue
            what = "was never called" if each["error"] is None else f"could not be made ({each['error']})"
            yield Finding(
                name="wrapper-lost",
                where=each["line"],
                message=f"{each['kind']} {what}, and the plain module was trained, {pluralized(eager, 'update')}.",
                remedy="Train by calling what the wrapper returns, and let an error of the wrapper end the script.",
            )


def _left_program(process: ProcessRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    left = updates_past_program(process)
    if left is None or (before is not None and any(map(updates_past_program, before.trained))):
        return
    last, eager = left
    wrappers = process.summary.get("wrappers", ())
    kind = next((each["kind"] for each in wrappers if each["number"] == last.fields.get("wrapper")), "A program")
    yield Finding(
        name="wrapper-lost",
        where=eager[-1].line,
        message=f"{kind} trained up to update {last.step}, and from update {eager[0].step} on the plain module was "
        f"trained here, {pluralized(len(eager), 'update')}.",
        remedy="Train by calling what the wrapper returns, in every step.",
    )


def host_fallback(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """Training ran on the CPU although another device was requested."""
    for process in after.trained:
        on_host = [each for each in process.updates if each.is_eager and each.device == "cpu"]
        if not on_host or len(on_host) < len(process.updates) or any(wrapper_lost(after, before)):
            continue
        asked = _asked_device(process, before)
        if asked is not None:
            yield Finding(
                name="host-fallback",
                where=on_host[-1].line,
                message=f"{asked}, but all {len(on_host)} updates ran eagerly on the CPU.",
                remedy="Move the model and its inputs to the device, or wrap the model, and stop if that fails.",
            )


def _asked_device(process: ProcessRecord, before: ScriptRecord | None) -> str | None:
    for event in process.named("asked"):
        if event["what"] == "device" and event["device"] != "cpu" and event["device"] != "meta":
            failed = " and failed" if event["error"] else ""
            return f"The device {event['device']!r} was requested{failed}"
    imported = process.summary.get("imported", ())
    if imported:
        return f"The script imports {imported[0]}"
    if before is not None and any(each.device not in ("cpu", "unknown") for each in before.first.updates):
        return f"The original trains on {before.first.updates[0].device}"
    return None


def optimizer_unused(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """An optimizer holds parameters and never changes a weight."""
    usual = (
        [] if before is None else [each["kind"] for each in before.first.summary.get("optimizers", ()) if _idle(each)]
    )
    for process in after.trained:
        for each in process.summary.get("optimizers", ()):
            is_seen = process.reached_its_end or each["after"] == 0
            if not _idle(each) or not is_seen or each["line"] is None:
                continue
            if each["kind"] in usual:
                usual.remove(each["kind"])
                continue
            stepped = f"was stepped {each['steps']} times without gradients" if each["steps"] else "was never stepped"
            yield Finding(
                name="optimizer-unused",
                where=each["line"],
                message=f"The {each['kind']} optimizer {stepped}: it has not changed any weight.",
                remedy="Give this optimizer to what trains, or remove it.",
            )


def _idle(optimizer: dict[str, int]) -> bool:
    return not optimizer["updates"] and optimizer["parameters"] > 0


def schedule_not_applied(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """A schedule of learning rates is missing or never stepped, or what it gives is not applied."""
    other = None if before is None else first_other_rate(after, before)
    if other is not None:
        ours, theirs = other
        optimizers = after.first.summary.get("optimizers", ())
        made = next((each["line"] for each in optimizers if each["number"] == theirs.fields.get("optimizer")), None)
        yield Finding(
            name="schedule-not-applied",
            where=made or theirs.line,
            message="The original's learning rate changes, but that of this optimizer does not: in update "
            f"{ours.step} the original applied {_rate(ours.rates)}, and this script {_rate(theirs.rates)}.",
            remedy="Schedule the optimizer that trains as the original does; with PopTorch, call setOptimizer after "
            "each step of the schedule.",
        )
    for process in after.trained:
        for each in process.summary.get("schedules", ()):
            if each["ignored"]:
                asked, applied = each["example"]
                yield Finding(
                    name="schedule-not-applied",
                    where=each["line"],
                    message=f"{each['kind']} asked for the rate {_rate(asked)}, but {_rate(applied)} was applied; "
                    f"{each['ignored']} of {each['changed']} updates ignored it.",
                    remedy="Schedule the optimizer that trains; with PopTorch, call setOptimizer after each step.",
                )
            elif not each["steps"] and process.reached_its_end and process.updates:
                yield Finding(
                    name="schedule-not-applied",
                    where=each["line"],
                    message=f"{each['kind']} was never stepped: the learning rate does not change.",
                    remedy="Call its step() after each update or each epoch.",
                )


def _rate(rates: list[float]) -> str:
    return ", ".join(f"{each:.6g}" for each in rates) or "none"


def eval_mode_in_training(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """Updates were made with the module in evaluation mode."""
    if before is not None and any(each.fields.get("in_eval_mode") for each in before.first.updates):
        return
    for process in after.trained:
        found = [each for each in process.updates if each.fields.get("in_eval_mode")]
        if found:
            yield Finding(
                name="eval-mode-in-training",
                where=found[0].fields.get("eval_line") or found[0].line,
                message=f"{pluralized(len(found), 'update')} of {len(process.updates)} ran in evaluation mode: no "
                "dropout, and batch normalisation by stored statistics.",
                remedy="Call train() on the model before it trains, and again after each evaluation.",
            )


def loss_root_differs(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """Backward starts from another value than the loss that forward returns."""
    for process in after.trained:
        for program in process.named("program"):
            if program["dropped"] is not None:
                yield Finding(
                    name="loss-root-differs",
                    where=program["dropped"]["loss"],
                    message="Backward starts at this loss; what forward computes from it and returns"
                    f"{_at(program['dropped']['operation'])} is not trained on.",
                    remedy="Mark the final value: poptorch.identity_loss(loss, reduction='none').",
                )
        drops = any(program["dropped"] is not None for program in process.named("program"))
        if before is not None and not drops and (line := _other_returned(process, before)) is not None:
            yield Finding(
                name="loss-root-differs",
                where=line,
                message="Backward starts from this loss; the original's loss is another value that forward returns.",
                remedy="Train on the original's loss: return it as the loss, or mark it (pilotage.mark_loss).",
            )
        usual = before is not None and before.first.first("misses_returned_loss")
        if process.first("misses_returned_loss") and not usual:
            event = next(process.named("split"), None)
            yield Finding(
                name="loss-root-differs",
                where=(event or {}).get("root") or process.updates[0].line,
                message="Backward starts from this value, which was not computed from the loss that forward returns.",
                remedy="Call backward on the loss that forward returns.",
            )


def _other_returned(process: ProcessRecord, before: ScriptRecord) -> str | None:
    """The line of the loss of a program, if another value that forward returns is the original's loss."""
    first, original = process.updates[0], before.first.updates[0].losses
    returned: list[float] = first.fields.get("returned") or []
    if len(first.losses) != 1 or len(original) != 1 or _equal(first.losses[0], original[0]):
        return None
    if not any(_equal(each, original[0]) for each in returned):
        return None
    event = next(process.named("split"), {})
    lines = event.get("returned", [])
    named = [line for line, value in zip(lines, returned, strict=False) if line and _equal(value, first.losses[0])]
    return named[0] if named else first.line


def _equal(left: float, right: float) -> bool:
    return abs(left - right) <= 1e-4 * max(abs(left), abs(right))


def _at(where: str | None) -> str:
    return "" if where is None else f" at {where}"


_SPLIT_REMEDY = "Normalise over the features of a sample, for example softmax with dim=-1 instead of dim=0."
_SPLIT_REMEDIES = {
    "div": "Divide by something that each sample has for itself, such as the number of its pixels; or keep the "
    "micro-batch of the original, and one replica and one instance."
}
"""What to do, by the operation that mixes the samples."""


def loss_depends_on_batch_split(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """The loss changes when a batch is split."""
    for process in after.trained:
        for event in process.named("split"):
            if event["line"] is not None:
                yield Finding(
                    name="loss-depends-on-batch-split",
                    where=event["line"],
                    message=f"Here ({event['operation']}) each sample's result depends on the others of its batch: "
                    "another micro-batch, replica or instance count gives another loss.",
                    remedy=_SPLIT_REMEDIES.get(event["operation"], _SPLIT_REMEDY),
                )
