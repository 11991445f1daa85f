"""One end of a two-way connection between processes, with a cheap look at whether anything has arrived."""

from __future__ import annotations

import select
from multiprocessing.connection import Connection
from typing import Any


class Channel:
    """A connection that can be watched together with a process on the other side."""

    def __init__(self, connection: Connection, sentinel: int | None = None) -> None:
        """Watch the connection, and with a process's ``sentinel`` the end of that process."""
        self._connection = connection
        # Connection.poll builds a selector at every call, which costs more than the message itself.
        self._arrivals = select.poll()
        self._arrivals.register(connection.fileno(), select.POLLIN)
        self._arrivals_or_end = select.poll()
        self._arrivals_or_end.register(connection.fileno(), select.POLLIN)
        if sentinel is not None:
            self._arrivals_or_end.register(sentinel, select.POLLIN)

    @property
    def connection(self) -> Connection:
        """The connection below."""
        return self._connection

    def has_message(self) -> bool:
        """Whether something has arrived, if only the news that the other end is closed."""
        return bool(self._arrivals.poll(0))

    def wait(self) -> None:
        """Sleep until a message is there or the other side is gone."""
        self._arrivals_or_end.poll()

    def send(self, message: Any) -> None:
        """Send a message; OSError where the other end is closed."""
        self._connection.send(message)

    def receive(self) -> Any:
        """The next message, waited for; EOFError or ConnectionError where none can come any more."""
        return self._connection.recv()

    def close(self) -> None:
        """Close this end."""
        self._connection.close()
