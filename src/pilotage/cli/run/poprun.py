"""The entry point of `poprun`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pilotage.cli.run import COMMAND
from pilotage.errors import PilotageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Start several instances of a program; returns the exit status of the first that fails, or 0."""
    try:
        return COMMAND.run(build_parser().parse_args(arguments))
    except PilotageError as error:
        print(f"poprun: {error}", file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="poprun", usage="poprun [options] program [arguments]")
    COMMAND.add_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
