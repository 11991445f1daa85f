"""The options of `pilotage report`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

__all__ = ["add_arguments"]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the files and where the page goes."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="what --json of predict or profile wrote; two are compared"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT.html", help="where to write the page (next to the first file)"
    )
    parser.add_argument("--no-open", action="store_true", help="write the page without opening it in a browser")
