"""The options of `pilotage predict`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from pilotage.cli.script_arguments import keep_what_follows_dashes

__all__ = ["add_arguments"]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options, and the script with its arguments."""
    parser.allow_abbrev = False
    parser.usage = "pilotage predict [options] SCRIPT [-- ARGUMENTS]\n       pilotage predict [options] MODULE:FUNCTION"
    parser.add_argument(
        "script", nargs="?", metavar="SCRIPT", help="a script, or a function without arguments as module:function"
    )
    parser.add_argument(
        "--device",
        default="bow,h200",
        metavar="NAMES",
        help="device models, separated by commas: names, or paths that end with .toml (bow,h200)",
    )
    parser.add_argument("--devices", action="store_true", help="list the device models and exit")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole report to a file")
    parser.add_argument(
        "--split",
        type=_at_least_two,
        metavar="N",
        help="divide the model over N devices: print the lines that begin its blocks",
    )
    parser.add_argument("--apply", action="store_true", help="with --split: write these lines into the script")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=20.0,
        metavar="S",
        help="processor seconds for predicting what changes would bring; 0 skips this (20)",
    )
    parser.set_defaults(script_arguments=[])
    keep_what_follows_dashes(parser)


def _at_least_two(text: str) -> int:
    if not text.isdigit() or int(text) < 2:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 2")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value
