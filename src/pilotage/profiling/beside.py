"""The prediction of a script, beside its profile."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pilotage.errors import ReportError
from pilotage.prediction.devices import known_models
from pilotage.prediction.document import Device, Operation, Report, read_report
from pilotage.profiling.request import Request

__all__ = ["model_for", "with_predicted_device", "with_prediction"]

_TIMEOUT_SECONDS = 300.0
_SECONDS_FOR_CHANGES = "10"
_FITS, _DOES_NOT_FIT = 0, 3
"""What `pilotage predict` returns if it has predicted."""


def with_prediction(report: Report, request: Request) -> Report:
    """A profile together with the prediction of the same script for the same device; without one, the plain profile."""
    (device,) = report.devices
    name = model_for(device, list(known_models()))
    if name is None:
        return _noted(report, f"Nothing was predicted: Pilotage has no model of {device.title}.")
    predicted = _predicted(request, name)
    if isinstance(predicted, str):
        return _noted(report, f"Nothing was predicted: {predicted}")
    return replace(report, devices=(with_predicted_device(device, predicted.devices[0]),))


def model_for(device: Device, names: Sequence[str]) -> str | None:
    """The name of the model of a device: its type, or a word of its title."""
    words = {device.name.lower(), *device.title.lower().split()}
    return next((name for name in names if name.lower() in words), None)


def _predicted(request: Request, device: str) -> Report | str:
    """The prediction, made in a separate process, or the reason why it failed."""
    with tempfile.TemporaryDirectory(prefix="pilotage-profile-") as folder:
        path = Path(folder) / "prediction.json"
        command = [sys.executable, "-m", "pilotage", "predict", str(request.script), "--device", device]
        command += ["--seconds", _SECONDS_FOR_CHANGES, "--json", str(path), "--", *request.arguments]
        try:
            ran = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"pilotage predict took longer than {_TIMEOUT_SECONDS:.0f} s."
        if ran.returncode not in (_FITS, _DOES_NOT_FIT) or not path.is_file():
            last = ran.stderr.strip().splitlines()[-1:] or ["it says nothing"]
            return last[0][:300]
        try:
            return read_report(path)
        except ReportError as error:
            return str(error)


def with_predicted_device(measured: Device, predicted: Device) -> Device:
    """Measurements and predictions in one report; each operation that both have gets its predicted time."""
    return replace(
        measured,
        peak_bytes=predicted.peak_bytes,
        time=predicted.time,
        operations=_together(measured.operations, predicted.operations),
        changes=predicted.changes,
        insights=(*measured.insights, *(f"Predicted: {text}" for text in predicted.insights)),
        assumptions=(*measured.assumptions, *predicted.assumptions),
    )


def _together(measured: Sequence[Operation], predicted: Sequence[Operation]) -> tuple[Operation, ...]:
    """Give each measured operation the next predicted one of the same name, phase and result."""
    waiting: dict[tuple[str, str, str], deque[Operation]] = defaultdict(deque)
    for each in predicted:
        waiting[each.name, each.phase, each.output].append(each)
    found = []
    for each in measured:
        same = waiting[each.name, each.phase, each.output]
        found.append(replace(each, seconds=same.popleft().seconds) if same else each)
    return tuple(found)


def _noted(report: Report, text: str) -> Report:
    (device,) = report.devices
    return replace(report, devices=(replace(device, assumptions=(*device.assumptions, text)),))
