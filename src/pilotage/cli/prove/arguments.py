"""The options of `pilotage prove`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from pilotage.cli.script_arguments import keep_what_follows_dashes

__all__ = ["add_arguments"]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options, and the scripts with their arguments."""
    parser.allow_abbrev = False
    parser.usage = (
        "pilotage prove [options] BEFORE AFTER [-- ARGUMENTS]\n       pilotage prove [options] SCRIPT [-- ARGUMENTS]"
    )
    parser.add_argument(
        "scripts", nargs="*", metavar="SCRIPT", help="the original and its port, or one script to audit"
    )
    parser.add_argument(
        "--before-command", metavar="COMMAND", help="the full command for the original, with its launcher"
    )
    parser.add_argument("--after-command", metavar="COMMAND", help="the full command for the port")
    parser.add_argument("--steps", type=_positive, default=50, metavar="N", help="updates to compare (50)")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="the seed of all random numbers (0)")
    parser.add_argument("--timeout", type=_seconds, default=600.0, metavar="S", help="seconds for each script (600)")
    parser.add_argument(
        "--align", action="store_true", help="repeat the original with the port's batch size and reduction"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to a file")
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="where to save a picture of both loss curves (proof.png, or next to the file of --json); off saves none",
    )
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="repeat the proof in FILE, which --json wrote")
    parser.set_defaults(script_arguments=[])
    keep_what_follows_dashes(parser)


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**32:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 to {2**32 - 1}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e7:
        raise ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value
