"""The options of `pilotage profile`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from pilotage.cli.script_arguments import keep_what_follows_dashes

__all__ = ["add_arguments"]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options, and the script with its arguments."""
    parser.allow_abbrev = False
    parser.usage = "pilotage profile [options] SCRIPT [-- ARGUMENTS]"
    parser.add_argument("script", type=Path, metavar="SCRIPT", help="a script that trains or infers")
    parser.add_argument("--warmup", type=_count, default=5, metavar="N", help="updates before measuring (5)")
    parser.add_argument("--steps", type=_positive, default=20, metavar="N", help="updates to time as a whole (20)")
    parser.add_argument("--looks", type=_positive, default=3, metavar="N", help="updates to time by operation (3)")
    parser.add_argument("--no-predict", action="store_true", help="only measure: leave out the prediction")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.html", help="write the report as a page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report for `pilotage report`")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a trace for Perfetto and Chrome")
    parser.add_argument(
        "--tensorboard", type=Path, metavar="DIR", help="trace one more update by torch's profiler, for TensorBoard"
    )
    parser.set_defaults(script_arguments=[])
    keep_what_follows_dashes(parser)


def _positive(text: str) -> int:
    value = _count(text)
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)
