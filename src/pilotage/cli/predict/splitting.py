"""`pilotage predict --split`: where to divide a model, and what that gains."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.errors import PredictionError

if TYPE_CHECKING:
    from pilotage.prediction.devices import DeviceModel
    from pilotage.prediction.scripts.running import Found
    from pilotage.prediction.splitting.planning import Split

__all__ = ["split", "split_lines"]


def split(found: Found, model: DeviceModel, arguments: Namespace) -> None:
    """Print the split of a program over devices, and write it into the script if asked to."""
    from pilotage.prediction.capturing.program import capturing_in
    from pilotage.prediction.reporting import predict_on
    from pilotage.prediction.splitting.applying import apply_split
    from pilotage.prediction.splitting.planning import plan_split

    with capturing_in(found.mode):
        split = plan_split(predict_on(found.what, model), arguments.split)
    if split is None:
        raise PredictionError(f"The model has fewer parts than the {arguments.split} devices of --split.")
    lines_for = partial(_written, found, split)
    print("\n" + "\n".join([*split_lines(split, lines_for("model")), *_depth_lines(found, split)]))
    if arguments.apply:
        lines = apply_split(Path(arguments.script), lines_for)
        print(f"\nWritten to {arguments.script}: {len(lines)} lines.")


def _written(found: Found, split: Split, model: str) -> list[str]:
    """What to write, in the words of the interface that the script uses."""
    from pilotage.door.with_loss import WithLoss
    from pilotage.prediction.splitting.lines import begin_block_lines, enter_stage_lines
    from pilotage.prediction.subject import Subject

    if not isinstance(found.what, Subject) or _is_poptorch(found):
        return begin_block_lines(split.modules, model, split.first_module)
    if not isinstance(found.what.module, WithLoss):
        return enter_stage_lines(split.modules, model)
    # The door wraps a model together with its loss, which comes last and has no place in the model.
    inside = [module.removeprefix("module.") for module in split.modules if module.startswith("module.")]
    lines = enter_stage_lines(inside, model)
    if len(inside) < len(split.modules):
        lines.append(f"# stage {len(lines)} is the loss: call pilotage.enter_stage({len(lines)}) at its beginning")
    return lines


def _depth_lines(found: Found, split: Split) -> list[str]:
    """What PopTorch refuses to run otherwise: a pipeline with fewer micro-batches than it needs."""
    if not _is_poptorch(found):
        return []
    stages, batching = split.prediction.stages.count, split.prediction.traced.batching
    needed = 2 * stages - 1
    if split.prediction.traced.trains and batching.gradient_accumulation < needed:
        line = f"options.Training.gradientAccumulation({needed})"
        return [f"  PopTorch fills a pipeline of {stages} stages only with {line} or more, and such inputs"]
    if not split.prediction.traced.trains and batching.device_iterations < stages:
        line = f"options.deviceIterations({stages})"
        return [f"  PopTorch fills a pipeline of {stages} stages only with {line} or more, and such inputs"]
    return []


def _is_poptorch(found: Found) -> bool:
    from pilotage.options.choices import LossRule
    from pilotage.prediction.subject import Subject

    return isinstance(found.what, Subject) and found.what.execution.loss_rule is LossRule.CALLED


def split_lines(split: Split, written: list[str]) -> list[str]:
    """The split for people: each stage, the lines to write, the gain."""
    from pilotage.prediction.screen import bytes_text, seconds_text

    prediction = split.prediction
    capacity = prediction.model.memory.capacity_bytes
    found = [f"split over {prediction.stages.count} x {prediction.model.title}"]
    begins = ["(start)", *split.modules]
    for begin, seconds, needs in zip(begins, prediction.stage_seconds, prediction.needs.stages, strict=True):
        found.append(
            f"  stage {needs.stage}: from {begin}: {seconds_text(seconds.work)} for a micro-batch, "
            f"{bytes_text(needs.peak_bytes)}"
        )
    found += [f"  {line}" for line in written]
    if prediction.fits:
        found.append(
            f"  every stage fits: the fullest needs {bytes_text(prediction.peak_bytes)} of {bytes_text(capacity)}"
        )
    else:
        fullest = prediction.needs.fullest
        live = fullest.live.at_peak()
        largest = max(live, key=live.__getitem__)
        found.append(
            f"  no split over {prediction.stages.count} devices fits: stage {fullest.stage} needs "
            f"{bytes_text(prediction.peak_bytes)} of {bytes_text(capacity)}, most of it {largest} "
            f"({bytes_text(live[largest])})"
        )
        if fullest.live.live:
            tensor, size = fullest.live.live[0]
            where = f" of {tensor.module or tensor.line}" if tensor.module or tensor.line else ""
            found.append(
                f"  its largest tensor is {tensor.name}{where} with {bytes_text(size)}: a smaller micro-batch, half "
                "precision or recomputation may help; see the predicted changes above"
            )
    other = "the script's own split" if split.has_stages else "equally many parts in each stage"
    other += "" if split.by_hand.fits else ", which does not fit"
    gain = split.slowest_by_hand / split.slowest if split.slowest else 1.0
    found.append(f"  the slowest stage takes {seconds_text(split.slowest)}, {gain:.2f} times as fast as {other}")
    return found
