"""The options of `pilotage port`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from pilotage.cli.script_arguments import keep_what_follows_dashes
from pilotage.porting.target import Target

__all__ = ["TARGETS", "add_arguments"]

TARGETS = tuple(each.value for each in Target)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options, and the files and folders to port."""
    parser.allow_abbrev = False
    parser.usage = (
        "pilotage port [options] PATH [PATH ...] --to TARGET [-- ARGUMENTS OF THE SCRIPT]\n"
        "       pilotage port --explain RULE"
    )
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="scripts, notebooks, and folders with them; port all files of a program together",
    )
    parser.add_argument("--to", choices=TARGETS, metavar="TARGET", help=f"one of {', '.join(TARGETS)}")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="TARGET", help="write the result to a new file or folder, not a diff"
    )
    parser.add_argument("--in-place", action="store_true", help="replace the files")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write all findings as JSON")
    parser.add_argument(
        "--prove", action="store_true", help="run original and port, and write nothing unless they train the same"
    )
    parser.add_argument(
        "--entry", type=Path, metavar="SCRIPT", help="with --prove: the script to run, if there are several"
    )
    parser.add_argument("--steps", type=int, default=50, metavar="N", help="with --prove: updates to compare (50)")
    parser.add_argument("--explain", metavar="RULE", help="explain what a rule does and why, with an example")
    parser.set_defaults(script_arguments=[])
    keep_what_follows_dashes(parser)
