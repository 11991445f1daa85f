"""Lists of hosts as people write them: host0,host1 or host[0-2,4]."""

from __future__ import annotations

import re

from pilotage.errors import OptionError

_COMMAS_OUTSIDE_OF_BRACKETS = re.compile(r",(?![^\[]*\])")
_WITH_RANGES = re.compile(r"^([^\[\],\s]*)\[([0-9,\-]+)\]([^\[\],\s]*)$")


def expand_hosts(text: str) -> list[str]:
    """The single hosts of a list, in its order."""
    hosts = [host for entry in _COMMAS_OUTSIDE_OF_BRACKETS.split(text) for host in _expand(entry.strip(), text)]
    repeated = {host for host in hosts if hosts.count(host) > 1}
    if repeated:
        raise OptionError(f"The host list {text!r} names {', '.join(sorted(repeated))} more than once.")
    return hosts


def _expand(entry: str, text: str) -> list[str]:
    if entry and not set("[] \t-") & {entry[0]} and not set("[] \t") & set(entry):
        return [entry]
    match = _WITH_RANGES.match(entry)
    # A host that begins with a dash would be read as an option by ssh.
    if match is None or entry.startswith("-"):
        raise OptionError(f"The host list {text!r} cannot be read. Write host0,host1 or host[0-2,4].")
    before, ranges, after = match.groups()
    return [f"{before}{number}{after}" for part in ranges.split(",") for number in _numbers(part, text)]


def _numbers(part: str, text: str) -> list[str]:
    first, dash, last = part.partition("-")
    last = last if dash else first
    if not first.isdecimal() or not last.isdecimal() or int(last) < int(first):
        raise OptionError(f"The host list {text!r} has the range {part!r}. Write the lower number first: [0-2,4].")
    # Leading zeros belong to the names: node[08-10] is node08, node09, node10.
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
