"""Builds the emulated Gaudi device ahead of time: ``python -m habana_frameworks.build [--directory DIR]``.

For images and clusters: run it once, and processes only load the library. It registers no device.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import pilotage

_DIRECTORY = "PILOTAGE_CACHE_DIR"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the library, and print where it lies."""
    parser = argparse.ArgumentParser(prog="python -m habana_frameworks.build", description=__doc__)
    parser.add_argument(
        "--directory", help=f"where to keep it; set {_DIRECTORY} to the same directory to use it (default: the cache)"
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s of Pilotage {pilotage.__version__}")
    given = parser.parse_args(arguments)
    if given.directory:
        os.environ[_DIRECTORY] = given.directory
    from habana_frameworks._emulation.library import built_library

    try:
        print(built_library())
    except ImportError as error:
        print(f"python -m habana_frameworks.build: {error}", file=sys.stderr)
        return 1
    if given.directory:
        print(f"Set {_DIRECTORY}={given.directory} where programs run.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
