"""Run `pilotage scan`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.cli.port.arguments import TARGETS
from pilotage.errors import PilotageError

if TYPE_CHECKING:
    from pilotage.porting.scanning import Scan

__all__ = ["add_arguments", "lines_of", "run"]

SCANNED, NOT_SCANNED = 0, 2
_SHOWN = 10
"""How many files and findings are printed; `--json` has all."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="scripts, notebooks and folders")
    parser.add_argument(
        "--to",
        action="append",
        choices=TARGETS,
        metavar="TARGET",
        help=f"a target ({', '.join(TARGETS)}); the default is all of them",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to a file")


def run(arguments: Namespace) -> int:
    """Run the command; 0: scanned, 2: it could not be read or written."""
    from pilotage.porting.scanning import scan_paths
    from pilotage.porting.target import Target
    from pilotage.whole_files import write_whole

    try:
        scan = scan_paths(arguments.paths, [Target(each) for each in arguments.to or TARGETS])
        print("\n".join(lines_of(scan)))
        if arguments.json is not None:
            write_whole(arguments.json, scan.to_json().encode())
    except (PilotageError, OSError) as error:
        print(f"pilotage scan: {error}", file=sys.stderr)
        return NOT_SCANNED
    return SCANNED


def lines_of(scan: Scan) -> Iterator[str]:
    """The scan as lines."""
    training = sum(each.trains for each in scan.files)
    lines = sum(each.lines for each in scan.files)
    files = f"{len(scan.files):,} file{'' if len(scan.files) == 1 else 's'}"
    yield f"{files}, {lines:,} lines. Files that train: {training:,}."
    yield from scan.unreadable
    yield from _table(scan)
    yield from _estimates(scan)
    if scan.begin_with:
        yield from ["", "Begin with:"]
        by_path = {each.path: each for each in scan.files}
        for path in scan.begin_with[:_SHOWN]:
            left = sum(each.path == str(path) for estimate in scan.estimates for each in estimate.left)
            yield f"  {path}: {by_path[path].total} places, {left or 'nothing'} left to do by hand"
    yield from _left(scan)


def _table(scan: Scan) -> Iterator[str]:
    from pilotage.porting.places import KINDS

    places = scan.places
    if places:
        yield from ["", f"{'what':<42} {'places':>7} {'files':>6}"]
    for kind in KINDS:
        if places[kind]:
            files = sum(bool(each.places[kind]) for each in scan.files)
            yield f"{kind:<42} {places[kind]:>7,} {files:>6,}"


def _estimates(scan: Scan) -> Iterator[str]:
    yield from ["", f"{'target':<10} {'automatic':>10} {'edited files':>13} {'refused files':>14} {'by hand':>8}"]
    for each in scan.estimates:
        yield (
            f"{each.target.value:<10} {each.automatic:>10.0%} {each.changed:>13,} {each.refused:>14,} "
            f"{len(each.left):>8,}"
        )


def _left(scan: Scan) -> Iterator[str]:
    """What is left by hand for any target, each place once."""
    left = list(dict.fromkeys(str(each) for estimate in scan.estimates for each in estimate.left))
    if left:
        yield from ["", "Left to do by hand:"]
        yield from left[:_SHOWN]
    if len(left) > _SHOWN:
        yield f"and {len(left) - _SHOWN} more; --json FILE lists them all."
