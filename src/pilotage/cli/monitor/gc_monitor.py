"""The entry point of `gc-monitor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pilotage.cli.monitor.arguments import add_arguments
from pilotage.cli.monitor.records import as_vendors_json
from pilotage.cli.monitor.screen import GC_MONITOR
from pilotage.cli.monitor.watching import run

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Show the devices of this machine and the attached processes, as gc-monitor does."""
    parser = argparse.ArgumentParser(
        prog="gc-monitor", description="Show the devices of this machine, and your processes that run programs on them."
    )
    add_arguments(parser)
    try:
        return run(parser.parse_args(arguments), wording=GC_MONITOR, as_json=as_vendors_json)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
