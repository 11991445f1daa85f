"""The entry point of `gc-monitor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pilotage.cli.monitor.arguments import add_arguments
from pilotage.cli.monitor.records import as_vendors_json
from pilotage.cli.monitor.screen import GC_MONITOR
from pilotage.cli.monitor.watching import run
from pilotage.version import VERSION

__all__ = ["build_parser", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the devices of this machine and the attached processes, as gc-monitor does."""
    try:
        return run(build_parser().parse_args(arguments), wording=GC_MONITOR, as_json=as_vendors_json)
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="gc-monitor", description="Show the devices of this machine, and your processes that run programs on them."
    )
    parser.add_argument("--version", action="version", version=f"gc-monitor of Pilotage {VERSION}")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
