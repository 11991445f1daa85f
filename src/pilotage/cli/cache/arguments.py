"""The options of `pilotage cache`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from pathlib import Path

from pilotage.errors import OptionError
from pilotage.options import quantities

__all__ = ["add_arguments"]

_EXAMPLES = """\
examples:
  pilotage cache                            list all entries and their directories
  pilotage cache check                      read every file and compare it with its digest
  pilotage cache clear                      remove damaged and foreign entries, leftovers, and entries beyond the limits
  pilotage cache clear --older-than 30d     also remove entries not used for 30 days
  pilotage cache clear 3fa9 --dry-run       show what removing one entry would free

Entries in use by a running program are never removed. PILOTAGE_CACHE_SIZE (10GiB) and PILOTAGE_CACHE_AGE (90d) limit
each directory: adding a program removes the least recently used ones.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions and their options."""
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLES
    parser.set_defaults(action="list")
    _add_common(parser, directory=None, json=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _add_action(actions.add_parser("list", help="list the entries (the default)"), "list")
    _add_action(actions.add_parser("check", help="read every file; exit status 1 if anything is wrong"), "check")
    clear = actions.add_parser("clear", help="remove unusable entries, or the ones that you choose")
    _add_action(clear, "clear")
    clear.add_argument(
        "names", nargs="*", metavar="NAME", help="remove only these entries; the first letters are enough"
    )
    clear.add_argument(
        "--older-than", type=_age, metavar="AGE", help="also remove entries not used for this long, such as 12h or 30d"
    )
    clear.add_argument("--all", action="store_true", help="remove every entry that no running program uses")
    clear.add_argument("--dry-run", action="store_true", help="only print what would be removed")


def _add_action(parser: ArgumentParser, action: str) -> None:
    parser.set_defaults(action=action)
    # An option before the action counts unless it is repeated after it.
    _add_common(parser, directory=SUPPRESS, json=SUPPRESS)


def _add_common(parser: ArgumentParser, *, directory: str | None, json: str | bool) -> None:
    parser.add_argument(
        "--directory",
        type=Path,
        default=directory,
        metavar="DIR",
        help="another cache directory, such as the one in POPTORCH_CACHE_DIR or cache_directory=",
    )
    parser.add_argument("-j", "--json", action="store_true", default=json, help="print JSON")


def _age(text: str) -> float:
    try:
        return quantities.duration(text, "the age")
    except OptionError as error:
        raise ArgumentTypeError(str(error)) from None
