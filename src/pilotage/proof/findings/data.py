"""Findings about samples: those that are left out and those that are trained on twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pilotage.proof.findings.finding import Finding
from pilotage.proof.records import ProcessRecord, ScriptRecord

__all__ = ["samples_dropped", "samples_repeated"]

_DROPPED_OF_ORIGINAL = 0.005
"""A port may leave out this share of what the original trains on in an epoch."""

_DROPPED_OF_DATASET = 0.05
"""A script may leave out this share of its data set."""

_REPEATED = 0.02
"""This share of an epoch may be repeated: a sampler fills up the last batches of all processes."""

_KNOWN_SAMPLERS = ("RandomSampler", "SequentialSampler", "DistributedSampler", "SubsetRandomSampler", "ShardSampler")
"""Samplers that draw each sample once."""


def samples_dropped(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """An epoch trains on fewer samples than the original's, or than the data set has."""
    loader = _training_loader(after.first)
    if loader is None:
        return
    used = [_samples_of_epoch(each) for each in after.trained if each.header["stage"] in (None, 0)]
    if any(each is None for each in used):
        return
    total = sum(each for each in used if each is not None)
    original = None if before is None else [_samples_of_epoch(each) for each in before.trained]
    if original is not None and None not in original:
        wanted, allowed = sum(each for each in original if each is not None), _DROPPED_OF_ORIGINAL
        of = "of the original's"
    elif before is None and loader["dataset"]:
        wanted, allowed, of = loader["dataset"], _DROPPED_OF_DATASET, "of the data set's"
        if loader["drop_last"] and wanted - total < _micro_batch(after.first):
            return
    else:
        return
    if total < (1 - allowed) * wanted:
        yield Finding(
            name="samples-dropped",
            where=loader["line"],
            message=f"An epoch trains on {total} {of} {wanted} samples.",
            remedy="Choose a batch size, device iterations and instances whose product divides the data set, or keep "
            "the last batch; divide the data set among processes once.",
        )


def _training_loader(process: ProcessRecord) -> dict[str, Any] | None:
    loads = [load for update in process.updates for load in update.fields["loads"]]
    if not loads:
        return None
    number = Counter(load["loader"] for load in loads).most_common(1)[0][0]
    return next((dict(each) for each in process.named("loader") if each["number"] == number), None)


def _micro_batch(process: ProcessRecord) -> int:
    """Samples of one forward pass."""
    program = next(process.named("program"), None)
    samples = process.updates[0].samples or 0
    return samples if program is None else samples // max(1, program["gradient_accumulation"] * program["replicas"])


def _samples_of_epoch(process: ProcessRecord) -> int | None:
    """How many samples of an epoch a process trains on: seen, if an epoch was seen whole, else by the loader."""
    loader = _training_loader(process)
    if loader is None:
        return None
    if (seen := _samples_seen(process, loader["number"])) is not None:
        return seen
    if loader["batches"] is None or loader["batch_size"] is None or loader["drawn"] is None:
        return None
    planned = min(loader["drawn"], loader["batches"] * loader["batch_size"])
    return int(planned * _share_used(process))


def _samples_seen(process: ProcessRecord, number: int) -> int | None:
    loads = [load for update in process.updates for load in update.fields["loads"] if load["loader"] == number]
    epochs = [load["epoch"] for load in loads]
    if not epochs or max(epochs) == min(epochs):
        return None
    first = sum(load["samples"] for load in loads if load["epoch"] == min(epochs))
    return int(first)


def _share_used(process: ProcessRecord) -> float:
    """The share of loaded samples that went into an update; a script may skip batches."""
    used = sum(each.samples or 0 for each in process.updates)
    skipped = sum(each.fields.get("skipped", 0) for each in process.updates)
    return used / (used + skipped) if skipped else 1.0


def samples_repeated(after: ScriptRecord, before: ScriptRecord | None) -> Iterator[Finding]:
    """Samples are trained on more than once in an epoch."""
    loader = _training_loader(after.first)
    if loader is None or loader["replacement"] or after.first.header["stage"] is not None:
        return
    repeated, total = _repeated(after)
    usual = 0.0 if before is None else (lambda found: found[0] / max(1, found[1]))(_repeated(before))
    # A sampler of the script's own may draw as it likes, unless all processes draw the same.
    allowed = _REPEATED if loader["sampler"] in _KNOWN_SAMPLERS else 0.4
    if total and repeated / total > max(allowed, 2 * usual) and repeated > after.processes:
        others = f" by {after.processes} processes together" if after.processes > 1 else ""
        yield Finding(
            name="samples-repeated",
            where=loader["line"],
            message=f"{repeated} of {total} samples were trained on again in the same epoch{others}.",
            remedy="Give each process its share: a DistributedSampler, or PopTorch's loader with popdist's options.",
        )


def _repeated(run: ScriptRecord) -> tuple[int, int]:
    """How many samples of one pass over the data came again, and how many there were."""
    seen: Counter[Any] = Counter()
    for process in run.trained:
        for load in _loads_of_a_pass(process, run.steps):
            seen.update(_keys(load))
    total = sum(seen.values())
    if run.processes > 1 and not _same_content(run):
        return 0, total
    return total - len(seen), total


def _loads_of_a_pass(process: ProcessRecord, steps: int) -> list[dict[str, Any]]:
    """The batches of one pass over the data: the first epoch, or as many batches where each is an epoch."""
    loader = _training_loader(process)
    if loader is None:
        return []
    updates = process.updates[:steps]
    loads = [load for each in updates for load in each.fields["loads"] if load["loader"] == loader["number"]]
    first = [load for load in loads if load["epoch"] == loads[0]["epoch"]]
    # A script that begins a new epoch for every batch has no epochs at all.
    if len(first) > 1 or len(loads) == 1 or (loader["batches"] or 0) < 3:
        return first
    kept, samples = [], 0
    for load in loads:
        samples += load["samples"]
        if samples > (loader["drawn"] or 0):
            break
        kept.append(load)
    return kept


def _keys(load: dict[str, Any]) -> list[Any]:
    if load["indices"] is not None:
        return list(load["indices"])
    # Values of samples say less than indices: equal ones may be different samples of one process.
    return [(number, value) for number, value in enumerate(load["content"] or ())]


def _same_content(run: ScriptRecord) -> bool:
    """Whether equal indices mean equal samples in all processes; each may have a data set of its own."""
    first = run.first.updates[0]
    others = [process.updates[0] for process in run.trained[1:]]
    for other in others:
        if first.indices is not None and first.indices == other.indices and first.content != other.content:
            return False
    return True
