"""Run the monitor: take surveys once or repeatedly, and show or print them."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial

from pilotage.cli.monitor import display, records
from pilotage.cli.monitor.lines import Line
from pilotage.cli.monitor.screen import MONITOR, Wording, screen
from pilotage.cli.monitor.table import Cell
from pilotage.monitoring.survey import Survey, Surveyor

__all__ = ["run"]


def run(arguments: Namespace, *, wording: Wording = MONITOR, as_json: Callable[..., str] = records.as_json) -> int:
    """Run the command; returns the exit status."""
    try:
        if arguments.json or arguments.csv_output:
            _write(arguments, as_json)
        else:
            _show(arguments, wording)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; without this, Python would report it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        if arguments.watch is None:
            raise
    return 0


def _show(arguments: Namespace, wording: Wording) -> None:
    surveyor, drawn = Surveyor(), partial(_drawn, arguments, wording)
    if arguments.watch is None:
        display.show(drawn(surveyor.survey()))
        return
    with display.in_place() as show:
        while True:
            survey = surveyor.survey()
            watched = f"{survey.moment:%H:%M:%S}, every {arguments.watch:g} s until Ctrl-C"
            show([*drawn(survey), [Cell(watched, "note")]])
            time.sleep(arguments.watch)


def _drawn(arguments: Namespace, wording: Wording, survey: Survey) -> list[Line]:
    return screen(
        survey,
        wording,
        display.terminal_drawing(),
        display.terminal_width(),
        devices=not arguments.no_card_info,
        processes=not arguments.sensors,
    )


def _write(arguments: Namespace, as_json: Callable[..., str]) -> None:
    """Print records; while watching, each survey is one line of JSON, or lines of CSV under one header."""
    surveyor, headers = Surveyor(), not arguments.no_headers
    while True:
        survey = surveyor.survey()
        if arguments.json:
            print(as_json(survey, indent=2 if arguments.watch is None else None), flush=True)
        elif text := records.as_csv(survey, by_device=arguments.sensors, headers=headers):
            print(text, flush=True)
        if arguments.watch is None:
            return
        headers = False
        time.sleep(arguments.watch)
