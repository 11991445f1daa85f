"""Parse host lists such as host0,host1 or host[0-2,4]."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pilotage.errors import OptionError

MAX_HOSTS = 65_536
"""Catches typos in ranges; the largest clusters have fewer hosts."""

_MAX_DIGITS = 18
_WITH_RANGES = re.compile(r"^([^\[\],\s]*)\[([0-9,\-]+)\]([^\[\],\s]*)$")
_MAX_SHOWN = 200


def expand_hosts(text: str) -> list[str]:
    """The hosts of a list, in order; at most 65,536."""
    hosts: list[str] = []
    for entry in _entries(text):
        hosts += _expand(entry.strip(), text, MAX_HOSTS - len(hosts))
    repeated = sorted(host for host, count in Counter(hosts).items() if count > 1)
    if repeated:
        raise OptionError(f"The host list {_shown(text)} names {', '.join(repeated[:10])} more than once.")
    return hosts


def _entries(text: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    start = depth = 0
    for index, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _expand(entry: str, text: str, room: int) -> list[str]:
    if entry and not set("[] \t-") & {entry[0]} and not set("[] \t") & set(entry):
        if not room:
            raise _too_many(text)
        return [entry]
    match = _WITH_RANGES.match(entry)
    # ssh would read a host that starts with a dash as an option.
    if match is None or entry.startswith("-"):
        raise OptionError(f"The host list {_shown(text)} cannot be read. Write host0,host1 or host[0-2,4].")
    before, ranges, after = match.groups()
    found: list[str] = []
    for part in ranges.split(","):
        found += (f"{before}{number}{after}" for number in _numbers(part, text, room - len(found)))
    return found


def _numbers(part: str, text: str, room: int) -> list[str]:
    first, dash, last = part.partition("-")
    last = last if dash else first
    if not first.isdecimal() or not last.isdecimal() or max(len(first), len(last)) > _MAX_DIGITS:
        raise OptionError(
            f"The host list {_shown(text)} has the range {_shown(part)}. "
            f"Write numbers of at most {_MAX_DIGITS} digits: [0-2,4]."
        )
    if int(last) < int(first):
        raise OptionError(
            f"The host list {_shown(text)} has the range {part!r}. Write the lower number first: [0-2,4]."
        )
    if int(last) - int(first) >= room:
        raise _too_many(text)
    # Leading zeros belong to the names: node[08-10] is node08, node09, node10.
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


def _too_many(text: str) -> OptionError:
    return OptionError(f"The host list {_shown(text)} names more than {MAX_HOSTS} hosts, the maximum for a job.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
