"""Reading a short text file that the command line names, whatever it turns out to be."""

from __future__ import annotations

import os
import select
import stat
import time

from pilotage.errors import OptionError

MOST_BYTES = 1 << 20
SECONDS = 10.0
"""How long to wait for a pipe; shells hand over `<(command)` as one."""


def read_small_file(name: str, what: str) -> str:
    """The text of a file of at most 1 MiB; devices, endless files and pipes that never end are refused."""
    try:
        # Without waiting, since the other end of a named pipe may never be opened.
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _read(file, name, what).decode()
        finally:
            os.close(file)
    except OSError as error:
        raise OptionError(f"The {what} {name!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise OptionError(f"The {what} {name!r} is not a text in UTF-8: {error.reason}.") from None


def _read(file: int, name: str, what: str) -> bytes:
    mode = os.fstat(file).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISDIR(mode)):
        raise OptionError(f"The {what} {name!r} is a device or a socket. Give a regular file or a pipe.")
    found, end = b"", time.monotonic() + SECONDS
    while len(found) <= MOST_BYTES:
        if not select.select([file], [], [], max(0.0, end - time.monotonic()))[0]:
            raise OptionError(f"The {what} {name!r} is a pipe that has not ended after {SECONDS:.0f} seconds.")
        more = os.read(file, MOST_BYTES + 1 - len(found))
        if not more:
            return found
        found += more
    raise OptionError(f"The {what} {name!r} is larger than {MOST_BYTES} bytes, the most that is read.")
