"""Run `pilotage port`."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.errors import PilotageError, PortingError

if TYPE_CHECKING:
    from pilotage.porting.report import Report

__all__ = ["run"]

DONE, LEFT_TO_DO, NOT_RUN = 0, 1, 2


def run(arguments: Namespace) -> int:
    """Run the command; 0: nothing left to do, 1: something left to do by hand, 2: it could not be run."""
    try:
        if arguments.explain is not None:
            return _explain(arguments.explain)
        _check(arguments)
        return _port(arguments)
    except (PilotageError, OSError) as error:
        print(f"pilotage port: {error}", file=sys.stderr)
        return NOT_RUN


def _port(arguments: Namespace) -> int:
    from pilotage.cli.port.proving import prove_port
    from pilotage.porting.driver import port_paths
    from pilotage.porting.files import Writing
    from pilotage.porting.target import Target

    report = port_paths(arguments.paths, Target(arguments.to))
    writing = Writing(report, output=arguments.output, in_place=arguments.in_place)
    writing.check()
    if arguments.report is not None:
        _write_report(report, arguments.report)
    for finding in report.findings:
        print(finding, file=sys.stderr)
    is_proved = True
    if arguments.prove and any(each.is_changed for each in report.files):
        is_proved = prove_port(report, arguments)
    if not arguments.in_place and arguments.output is None:
        _print_diff(report)
    elif is_proved:
        for path in writing.write():
            print(f"wrote {path}")
    _sum_up(report)
    return DONE if report.is_complete and is_proved else LEFT_TO_DO


def _check(arguments: Namespace) -> None:
    if not arguments.paths:
        raise PortingError("Give scripts or folders to port. `pilotage port --help` says more.")
    if arguments.to is None:
        raise PortingError("Choose a target: --to poptorch, popdist, hpu or pilotage.")
    if arguments.in_place and arguments.output is not None:
        raise PortingError("Give either --in-place or -o, not both.")
    if arguments.steps < 1:
        raise PortingError(f"--steps is {arguments.steps}; give at least 1.")
    report: Path | None = arguments.report
    if report is not None and not report.parent.is_dir():
        raise PortingError(f"The folder {str(report.parent)!r} for {report.name} does not exist.")


def _write_report(report: Report, path: Path) -> None:
    from pilotage.whole_files import write_whole

    write_whole(path, (report.to_json() + "\n").encode())


def _print_diff(report: Report) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    for file in report.files:
        sys.stdout.write(file.diff().encode(encoding, errors="replace").decode(encoding))


def _sum_up(report: Report) -> None:
    changed = sum(each.is_changed for each in report.files)
    left = sum(each.severity.is_left_to_do for each in report.findings)
    what = "nothing is left to do by hand" if not left else f"{left} left to do by hand"
    print(f"{changed} of {len(report.files)} files change; {what}.", file=sys.stderr)


def _explain(name: str) -> int:
    from pilotage.porting.explaining import explained
    from pilotage.porting.rules.registry import rule_named

    print(explained(rule_named(name)))
    return DONE
