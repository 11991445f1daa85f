"""Lists of hosts as people write them: host0,host1 or host[0-2,4]."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from pilotage.errors import OptionError

MOST_HOSTS = 65_536
"""Catches typos in ranges; the largest clusters have fewer hosts."""

_MOST_DIGITS = 18
_WITH_RANGES = re.compile(r"^([^\[\],\s]*)\[([0-9,\-]+)\]([^\[\],\s]*)$")
_SHOWN = 200


def expand_hosts(text: str) -> list[str]:
    """The single hosts of a list, in its order; at most 65,536."""
    hosts: list[str] = []
    for entry in _entries(text):
        hosts += _expand(entry.strip(), text, MOST_HOSTS - len(hosts))
    repeated = sorted(host for host, count in Counter(hosts).items() if count > 1)
    if repeated:
        raise OptionError(f"The host list {_shown(text)} names {', '.join(repeated[:10])} more than once.")
    return hosts


def _entries(text: str) -> Iterator[str]:
    """What stands between commas outside of brackets."""
    start = depth = 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _expand(entry: str, text: str, room: int) -> list[str]:
    if entry and not set("[] \t-") & {entry[0]} and not set("[] \t") & set(entry):
        if not room:
            raise _too_many(text)
        return [entry]
    match = _WITH_RANGES.match(entry)
    # A host that begins with a dash would be read as an option by ssh.
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
    if not first.isdecimal() or not last.isdecimal() or max(len(first), len(last)) > _MOST_DIGITS:
        raise OptionError(
            f"The host list {_shown(text)} has the range {_shown(part)}. Write numbers of at most {_MOST_DIGITS} digits: [0-2,4]."
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
    return OptionError(
        f"The host list {_shown(text)} names more than {MOST_HOSTS} hosts, the most that a job can have."
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
