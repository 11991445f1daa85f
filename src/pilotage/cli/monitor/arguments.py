"""The options of the monitor, by gc-monitor's names."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

__all__ = ["add_arguments"]

_SHORTEST = 0.1


def add_arguments(parser: ArgumentParser) -> None:
    """Declare what is shown, and how."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-j", "--json", action="store_true", help="print everything for programs, as JSON")
    form.add_argument("--csv-output", action="store_true", help="print one line for each program, or device with -s")
    parser.add_argument("--no-headers", action="store_true", help="leave out the first line of --csv-output")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--no-card-info", action="store_true", help="show the processes alone")
    shown.add_argument("-s", "--sensors", action="store_true", help="show the devices alone, with their sensors")
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        const=1.0,
        type=_seconds,
        metavar="SECONDS",
        help="look again every so often (1 s) until Ctrl-C, in place where this is a terminal",
    )
    parser.add_argument(
        "--all-partitions", action="store_true", help="accepted: this machine is the one partition, always shown"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not _SHORTEST <= seconds <= 86400:
        raise ArgumentTypeError(f"{text} lies outside of {_SHORTEST} to 86400 seconds")
    return seconds
