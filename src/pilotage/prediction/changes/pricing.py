"""Prices changes by predicting the changed program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain

import torch

from pilotage.errors import PilotageError
from pilotage.prediction.capturing.program import captured_for
from pilotage.prediction.changes.derived import with_recomputed_blocks, with_single_updates, with_slots_on_host
from pilotage.prediction.changes.extrapolation import with_more_samples
from pilotage.prediction.changes.half_precision import how_to_halve, stays_wide
from pilotage.prediction.changes.variants import in_type, repeated_blocks, types_of_attributes, with_accumulation
from pilotage.prediction.changes.wording import Wording, wording_of
from pilotage.prediction.document import Change
from pilotage.prediction.prediction import Prediction, Traced, predicted, traced, traced_program
from pilotage.prediction.splitting.planning import plan_split
from pilotage.prediction.subject import Loading, Subject
from pilotage.prediction.trace.operations import Category
from pilotage.program.program import Action, Program

__all__ = ["priced_changes"]

How = str | Callable[[Prediction], str]
Made = tuple[str, How, Callable[[], Prediction | None]]
"""A change, the lines to write for it, and how to predict its effect."""


def priced_changes(
    subject: Subject, base: Prediction, seconds: float, *, captures: bool = True
) -> tuple[list[Change], list[str]]:
    """Changes with their effect, and the names of changes that could not be predicted, or not in time.

    ``seconds`` is processor time, so that a busy machine prices the same changes. Without ``captures``, only changes
    that need no other run of forward are priced.
    """
    begin, found, left_out = time.process_time(), [], []
    made = _changes(subject, base)
    for option, how, predict in chain(made, _captured_again(subject, base)) if captures else made:
        if time.process_time() - begin > seconds:
            left_out.append(option)
            continue
        try:
            prediction = predict()
        except (PilotageError, RuntimeError, TypeError, ValueError, IndexError):
            # If the module does not run with this change, the change is not suggested.
            left_out.append(option)
            continue
        if prediction is not None:
            found.append(_change(option, how, prediction))
    return found, left_out


def _change(option: str, how: How, prediction: Prediction) -> Change:
    return Change(
        option=option,
        how=how if isinstance(how, str) else how(prediction),
        peak_bytes=prediction.peak_bytes,
        update_seconds=prediction.update_seconds,
        throughput=prediction.throughput,
        fits=prediction.fits,
    )


def _changes(subject: Subject, base: Prediction) -> Iterator[Made]:
    """Changes that need no new capture."""
    model, found, words = base.model, base.traced, wording_of(subject.execution)
    batching = subject.execution.batching
    iterations = 10 if batching.device_iterations == 1 else 4 * batching.device_iterations
    yield (
        f"device iterations {iterations}",
        words.device_iterations.format(iterations),
        lambda: _again(base, replace(found, batching=replace(batching, device_iterations=iterations))),
    )
    if found.loading.sample_seconds and not found.loading.overlaps:
        overlapping = replace(found.loading, overlaps=True)
        yield (
            "asynchronous loading",
            words.loading,
            lambda: _again(base, replace(found, loading=overlapping)),
        )
    if (narrow := _narrow_inputs(subject)) is not None:
        yield (
            "8-bit input",
            "send images as uint8, and begin forward with images.to(weight.dtype) / 255",
            lambda: _again(base, replace(found, input_bytes=narrow, loading=_faster(found.loading, narrow, base))),
        )
    if subject.plan is not None:
        yield (
            f"replicas {2 * batching.replicas}",
            words.replicas.format(2 * batching.replicas),
            lambda: _again(base, replace(found, batching=replace(batching, replicas=2 * batching.replicas))),
        )
        yield from _stages(base, words)
        yield (
            "offloading activations",
            words.activations.format(),
            lambda: predicted(found, model, base.arithmetic, offloads=True, costs=base.costs),
        )
        yield from _recomputation(subject, base, words)


def _stages(base: Prediction, words: Wording) -> Iterator[Made]:
    """The model over several devices: two, or as many as it needs to fit."""
    if base.stages.count > 1:
        return
    count = 2
    while count < _MOST_STAGES and count * base.model.memory.capacity_bytes < base.peak_bytes:
        count *= 2
    yield (
        f"stages {count}",
        words.stages.format(count),
        lambda: _split(base, count),
    )


def _split(base: Prediction, count: int) -> Prediction | None:
    plan = plan_split(base, count)
    return None if plan is None else plan.prediction


def _recomputation(subject: Subject, base: Prediction, words: Wording) -> Iterator[Made]:
    """Backward recomputes what is between the results of equal blocks."""
    blocks, program, execution = repeated_blocks(subject.module), base.traced.program, subject.execution
    if not blocks or program is None or execution.locations.activations is not None:
        return
    names = {id(part): path for path, part in subject.module.named_modules()}
    changed = with_recomputed_blocks(program, [names[id(each)] for each in blocks])
    if changed is not None:
        yield (
            "recomputation",
            words.recomputation.format(f"of the {len(blocks)} modules {type(blocks[0]).__name__}"),
            lambda: _of_program(subject, changed, base),
        )


def _captured_again(subject: Subject, base: Prediction) -> Iterator[Made]:
    """Changes that need a new capture, which runs forward."""
    model, batching, words = base.model, subject.execution.batching, wording_of(subject.execution)
    if any(each.dtype == torch.float32 for each in subject.module.parameters()):
        half, name = (torch.float16, "float16") if model.kind == "ipu" else (torch.bfloat16, "bfloat16")
        halving = how_to_halve(name, types_of_attributes(subject.module))
        yield (
            "half precision",
            lambda prediction: halving + stays_wide(prediction),
            lambda: _in_type(subject, base, half),
        )
    if subject.plan is not None:
        accumulation = max(4, 2 * batching.gradient_accumulation)
        accumulating = with_accumulation(subject, accumulation)
        pooling = cache(lambda: _pooling(accumulating, base))
        yield (
            f"accumulation {accumulation}",
            words.accumulation.format(accumulation),
            lambda: _of_program(accumulating, pooling(), base),
        )
        if subject.execution.locations.optimizer is None:
            yield "offloading optimizer state", words.optimizer.format(), lambda: _offloaded(subject, pooling(), base)
    yield from _micro_batches(subject, base)


def _micro_batches(subject: Subject, base: Prediction) -> Iterator[Made]:
    """Half as many samples, and twice as many, whose program follows from the two others."""
    fewer, more = subject.samples // 2, 2 * subject.samples
    small = cache(lambda: traced(subject.with_samples(fewer), base.model))
    if fewer:
        yield _of_samples(fewer, lambda: predicted(small(), base.model, base.arithmetic))
    yield _of_samples(more, lambda: _with_more(subject.with_samples(more), small() if fewer else None, base))


def _of_samples(samples: int, predict: Callable[[], Prediction]) -> Made:
    return f"micro-batch {samples}", f"batches of {samples} for each run of forward", predict


def _with_more(subject: Subject, small: Traced | None, base: Prediction) -> Prediction:
    found = None if small is None else with_more_samples(subject, small, base.traced)
    return _of(subject, base) if found is None else predicted(found, base.model, base.arithmetic)


_MOST_STAGES = 16


def _again(base: Prediction, found: Traced) -> Prediction:
    """The same operations in another batching; the device holds all micro-batches of a call."""
    times = found.batching.device_iterations / base.traced.batching.device_iterations
    tensors = tuple(
        replace(each, bytes=round(each.bytes * times)) if each.category is Category.INPUTS else each
        for each in found.update.tensors
    )
    found = replace(found, update=replace(found.update, tensors=tensors))
    return predicted(found, base.model, base.arithmetic, costs=base.costs)


def _of(subject: Subject, base: Prediction) -> Prediction:
    return predicted(traced(subject, base.model), base.model, base.arithmetic)


def _in_type(subject: Subject, base: Prediction, dtype: torch.dtype) -> Prediction:
    with in_type(subject, dtype) as changed:
        return _of(changed, base)


def _of_program(subject: Subject, program: Program, base: Prediction) -> Prediction:
    return predicted(traced_program(subject, program), base.model, base.arithmetic)


def _pooling(accumulating: Subject, base: Prediction) -> Program:
    """The program with pooled gradients: the present one if it has them."""
    program = base.traced.program
    if program is not None and Action.ACCUMULATE in program.computations:
        return program
    return captured_for(accumulating, base.model.kind)


def _offloaded(subject: Subject, pooling: Program, base: Prediction) -> Prediction:
    """With the optimizer's state outside of the device, except during updates."""
    program = pooling if pooling is base.traced.program else with_single_updates(pooling)
    return _of_program(subject, with_slots_on_host(program), base)


def _narrow_inputs(subject: Subject) -> int | None:
    """The bytes of a micro-batch whose large floating-point inputs are sent as bytes; None if that saves nothing."""
    sizes = [
        (each.bytes, each.elements if each.dtype.is_floating_point else each.bytes) for each in subject.micro_batch
    ]
    before, after = (sum(each) for each in zip(*sizes, strict=True)) if sizes else (0, 0)
    return after if after < before else None


def _faster(loading: Loading, narrow: int, base: Prediction) -> Loading:
    """The loading time, reduced in proportion to the bytes."""
    share = narrow / max(1, base.traced.input_bytes)
    return replace(loading, sample_seconds=loading.sample_seconds * min(1.0, share))
