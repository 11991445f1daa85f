"""Arguments of the user's script on the command line of ours: everything after ``--``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

__all__ = ["keep_what_follows_dashes"]


def keep_what_follows_dashes(parser: ArgumentParser) -> None:
    """Give everything after ``--`` to ``script_arguments``; argparse would treat it as further paths."""
    original = parser.parse_known_args

    def parse(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Namespace, list[str]]:
        given = list(args or ())
        place = given.index("--") if "--" in given else len(given)
        found, rest = original(given[:place], namespace)
        found.script_arguments = given[place + 1 :]
        return found, rest

    parser.parse_known_args = parse  # type: ignore[method-assign,assignment]
