"""One end of a two-way connection between processes, with a cheap test for messages."""

from __future__ import annotations

import select
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from pilotage.data.messages import FromConsumer, FromFetcher

_Received = TypeVar("_Received", FromFetcher, FromConsumer)


class Channel(Generic[_Received]):
    """A connection that can be watched together with the process on the other side."""

    def __init__(self, connection: Connection, sentinel: int | None = None) -> None:
        """Watch the connection and, with the ``sentinel`` of a process, the end of that process."""
        self._connection = connection
        # Connection.poll builds a selector in every call, which costs more than the message itself.
        self._arrivals = select.poll()
        self._arrivals.register(connection.fileno(), select.POLLIN)
        self._arrivals_or_end = select.poll()
        self._arrivals_or_end.register(connection.fileno(), select.POLLIN)
        if sentinel is not None:
            self._arrivals_or_end.register(sentinel, select.POLLIN)

    @property
    def connection(self) -> Connection:
        """The underlying connection."""
        return self._connection

    def has_message(self) -> bool:
        """Whether a message has arrived, or the other end is closed."""
        return bool(self._arrivals.poll(0))

    def wait(self) -> None:
        """Sleep until a message arrives or the other process ends."""
        self._arrivals_or_end.poll()

    def send(self, message: FromFetcher | FromConsumer) -> None:
        """Send a message; raises OSError if the other end is closed."""
        self._connection.send(message)

    def receive(self) -> _Received:
        """Wait for the next message; raises EOFError or ConnectionError if the other end is closed."""
        message: _Received = self._connection.recv()
        return message

    def close(self) -> None:
        """Close this end."""
        self._connection.close()
