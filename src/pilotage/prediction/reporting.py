"""A whole report: what was found in a script, predicted on each device that was asked for."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import torch

from pilotage.prediction.capturing.program import capturing_in
from pilotage.prediction.changes.pricing import priced_changes
from pilotage.prediction.describing.device import described
from pilotage.prediction.devices.model import DeviceModel, Kind
from pilotage.prediction.document import Change, Device, ProgramSummary, Report
from pilotage.prediction.prediction import Prediction, Traced, predicted, traced, traced_program
from pilotage.prediction.screen import NOT_PRICED
from pilotage.prediction.subject import Subject
from pilotage.program.program import Program
from pilotage.torch_private import FakeTensorMode
from pilotage.version import VERSION

__all__ = ["predict_on", "report_of"]

_SECONDS_FOR_CHANGES = 12.0


def report_of(
    what: Subject | Traced,
    models: Sequence[DeviceModel],
    *,
    mode: FakeTensorMode | None = None,
    program: Program | None = None,
    command: Sequence[str] = (),
    seconds_for_changes: float = _SECONDS_FOR_CHANGES,
    notes: Sequence[str] = (),
) -> Report:
    """Predict on every device; ``mode`` is that of the module's tensors, if they have no values.

    A ``program`` that was captured from the subject already is predicted as it is, without another run of forward.
    """
    with ExitStack() as stack:
        if mode is not None:
            stack.enter_context(capturing_in(mode))
        devices, first = [], None
        known: dict[Kind, Traced] = {}
        if program is not None and isinstance(what, Subject):
            known = dict.fromkeys((model.kind for model in models), traced_program(what, program))
        for model in models:
            prediction, device = _device(
                what, model, known, seconds_for_changes / len(models), notes, captures=program is None
            )
            first = first or prediction
            devices.append(device)
    assert first is not None
    return Report(
        kind="prediction",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        title=f"{first.traced.name} on {', '.join(model.title for model in models)}",
        command=tuple(command),
        versions={"pilotage": VERSION, "torch": torch.__version__, "python": platform.python_version()},
        machine={"system": platform.platform(), "processor": platform.machine()},
        program=_summary(what, first),
        devices=tuple(devices),
    )


def predict_on(what: Subject | Traced, model: DeviceModel) -> Prediction:
    """Predict on one device."""
    return predicted(what if isinstance(what, Traced) else traced(what, model), model)


def _device(
    what: Subject | Traced,
    model: DeviceModel,
    known: dict[Kind, Traced],
    seconds: float,
    notes: Sequence[str],
    *,
    captures: bool,
) -> tuple[Prediction, Device]:
    if model.kind not in known:
        # Devices of one kind run the same program.
        known[model.kind] = what if isinstance(what, Traced) else traced(what, model)
    prediction = predicted(known[model.kind], model)
    changes: list[Change] = []
    left_out: list[str] = []
    if isinstance(what, Subject):
        changes, left_out = priced_changes(what, prediction, seconds, captures=captures)
    device = described(prediction, changes)
    added = [*notes]
    if left_out and seconds:
        added.append(f"{NOT_PRICED}{', '.join(left_out)}.")
    return prediction, replace(device, assumptions=(*device.assumptions, *added))


def _summary(what: Subject | Traced, prediction: Prediction) -> ProgramSummary:
    found = prediction.traced
    if isinstance(what, Subject):
        parameters = sum(each.numel() for each in what.module.parameters())
        types = sorted({str(each.dtype).removeprefix("torch.") for each in what.module.parameters()})
    else:
        parameters, types = found.parameters, list(found.types)
    batching = found.batching
    return ProgramSummary(
        name=found.name,
        mode="training" if found.trains else "inference",
        micro_batch=found.samples,
        device_iterations=batching.device_iterations,
        accumulation=batching.gradient_accumulation,
        replicas=batching.replicas * batching.instances,
        stages=prediction.stages.count,
        parameters=parameters,
        precision=" and ".join(types) or "float32",
    )
