"""Read a short text file named on the command line, safely for any kind of file."""

from __future__ import annotations

import os
import select
import stat
import time

from pilotage.errors import OptionError

MAX_BYTES = 1 << 20
TIMEOUT = 10.0
"""Seconds to wait for a pipe, such as a shell's `<(command)`."""


def read_small_file(name: str, what: str) -> str:
    """The text of a file of at most 1 MiB; refuses devices, endless files and pipes that never end."""
    try:
        # Non-blocking, since the other end of a named pipe may never be opened.
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _read(file, name, what).decode()
        finally:
            os.close(file)
    except OSError as error:
        raise OptionError(f"The {what} {name!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise OptionError(f"The {what} {name!r} is not UTF-8 text: {error.reason}.") from None


def _read(file: int, name: str, what: str) -> bytes:
    mode = os.fstat(file).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISDIR(mode)):
        raise OptionError(f"The {what} {name!r} is a device or a socket. Give a regular file or a pipe.")
    found, end = b"", time.monotonic() + TIMEOUT
    while len(found) <= MAX_BYTES:
        if not select.select([file], [], [], max(0.0, end - time.monotonic()))[0]:
            raise OptionError(f"The {what} {name!r} is a pipe that has not ended after {TIMEOUT:.0f} seconds.")
        more = os.read(file, MAX_BYTES + 1 - len(found))
        if not more:
            return found
        found += more
    raise OptionError(f"The {what} {name!r} is larger than {MAX_BYTES} bytes.")
