"""The options of the monitor, with gc-monitor's names."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

__all__ = ["add_arguments"]

_SHORTEST = 0.1


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("-j", "--json", action="store_true", help="print everything as JSON")
    form.add_argument("--csv-output", action="store_true", help="print one line per program, or per device with -s")
    parser.add_argument("--no-headers", action="store_true", help="leave out the first line of --csv-output")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--no-card-info", action="store_true", help="show only the processes")
    shown.add_argument("-s", "--sensors", action="store_true", help="show only the devices, with their sensors")
    parser.add_argument(
        "-w",
        "--watch",
        nargs="?",
        const=1.0,
        type=_seconds,
        metavar="SECONDS",
        help="refresh every SECONDS (1) until Ctrl-C",
    )
    parser.add_argument(
        "--all-partitions", action="store_true", help="accepted without effect: this machine is the only partition"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not _SHORTEST <= seconds <= 86400:
        raise ArgumentTypeError(f"{text} is not between {_SHORTEST} and 86400 seconds")
    return seconds
