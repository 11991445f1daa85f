"""Run `pilotage profile`."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.errors import ProfileError

if TYPE_CHECKING:
    from pilotage.prediction.document import Report

__all__ = ["run"]

_STYLES = {"strong": "bold", "faint": "dim"}


def run(arguments: Namespace) -> int:
    """Run the script, show the profile and write what was asked for."""
    from pilotage.profiling.request import Request
    from pilotage.profiling.running import profile_script

    _require_folders(arguments)
    request = Request(
        script=arguments.script,
        arguments=tuple(arguments.script_arguments),
        warmup=arguments.warmup,
        updates=arguments.steps,
        looks=arguments.looks,
        tensorboard=arguments.tensorboard,
    )
    report = profile_script(request)
    sys.stdout.flush()
    if not arguments.no_predict:
        from pilotage.profiling.beside import with_prediction

        report = with_prediction(report, request)
    print()
    show(report)
    for text in _written(arguments, report):
        print(text)
    return 0


def _require_folders(arguments: Namespace) -> None:
    """Raise before the script runs if a result could not be written."""
    for given in (arguments.output, arguments.json, arguments.trace):
        if given is not None and not given.parent.is_dir():
            raise ProfileError(f"The folder {str(given.parent)!r} for {given.name} does not exist.")
    if arguments.tensorboard is not None and arguments.tensorboard.is_file():
        raise ProfileError(f"{arguments.tensorboard} is a file; --tensorboard needs a folder.")


def _written(arguments: Namespace, report: Report) -> list[str]:
    from pilotage.prediction.document import write_report
    from pilotage.prediction.report import page_of
    from pilotage.profiling.chrome_trace import write_trace
    from pilotage.whole_files import write_whole

    lines = [""]
    if arguments.json is not None:
        write_report(report, arguments.json)
        lines.append(f"Report: {arguments.json} (pilotage report {arguments.json})")
    if arguments.output is not None:
        write_whole(arguments.output, page_of([report]).encode(), durable=False)
        lines.append(f"Page: {arguments.output}")
    if arguments.trace is not None:
        write_trace(report, arguments.trace)
        lines.append(f"Trace: {arguments.trace} (open it at ui.perfetto.dev or chrome://tracing)")
    if arguments.tensorboard is not None:
        lines.append(_tensorboard(arguments.tensorboard))
    return lines if len(lines) > 1 else []


def _tensorboard(folder: Path) -> str:
    if any(folder.glob("*.pt.trace.json")):
        return f"TensorBoard: {folder} (tensorboard --logdir {folder}, with torch-tb-profiler)"
    return f"TensorBoard: nothing was traced into {folder}, because the script ended too early."


def show(report: Report) -> None:
    """Print a profile, with colours where the terminal has them."""
    from pilotage.profiling.screen import lines_of

    lines = lines_of(report, min(shutil.get_terminal_size((100, 24)).columns, 110))
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False)
        for text, style in lines:
            console.print(Text(text, style=_STYLES.get(style, "")), no_wrap=True, overflow="ignore", crop=False)
        return
    encoding = sys.stdout.encoding or "ascii"
    print("\n".join(text for text, _ in lines).encode(encoding, errors="replace").decode(encoding))
