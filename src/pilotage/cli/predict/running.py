"""Run `pilotage predict`."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from pilotage.errors import OptionError

if TYPE_CHECKING:
    from pilotage.prediction.scripts.running import Found

__all__ = ["run"]

FITS, DOES_NOT_FIT = 0, 3


def run(arguments: Namespace) -> int:
    """Run the command; 0: it fits every device, 3: it does not fit one of them."""
    from pilotage.prediction.devices import device_model, known_models
    from pilotage.prediction.reporting import report_of
    from pilotage.prediction.screen import lines_of, show
    from pilotage.prediction.scripts.running import find

    if arguments.devices:
        for name, path in known_models().items():
            print(f"{name:<10} {device_model(str(path)).title}")
        return FITS
    if arguments.script is None:
        raise OptionError("Give a script, or a function as module:function. `pilotage predict --help` says more.")
    if arguments.apply and arguments.split is None:
        raise OptionError("--apply writes the split into the script: give --split N as well.")
    models = [device_model(each.strip()) for each in arguments.device.split(",") if each.strip()]
    if not models:
        raise OptionError("--device names no device model. `pilotage predict --devices` lists them.")
    if arguments.json is not None and not arguments.json.parent.is_dir():
        raise OptionError(f"The folder {str(arguments.json.parent)!r} for {arguments.json.name} does not exist.")
    found = find(arguments.script, arguments.script_arguments)
    report = report_of(
        found.what,
        models,
        mode=found.mode,
        command=sys.argv,
        seconds_for_changes=arguments.seconds,
        notes=_notes(found),
    )
    show(lines_of(report))
    if arguments.json is not None:
        from pilotage.prediction.document import write_report

        write_report(report, arguments.json)
        print(f"\nReport: {arguments.json}")
    if arguments.split is not None:
        from pilotage.cli.predict.splitting import split

        split(found, models[0], arguments)
    return FITS if all(device.fits for device in report.devices) else DOES_NOT_FIT


def _notes(found: Found) -> list[str]:
    notes = []
    if found.values_read:
        notes.append(f"The script read {found.values_read} values of tensors that have none, and got 1 each time.")
    if getattr(found.what, "eager", False):
        notes.append("The script is plain PyTorch: its operations are predicted one by one, each launched from Python.")
    return notes
