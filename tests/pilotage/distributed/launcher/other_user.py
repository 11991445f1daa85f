"""Another user of this host, who tries to read, join and poison a job. Runs in a process without root rights."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch.distributed as dist

NOBODY = 65534
SEQUENCE_NUMBERS = range(4)
HEADER = struct.Struct("<6Q")
DATA, SEND_READY, RECEIVE_READY = 1, 2, 3
"""What gloo's messages are called."""


class Evil:
    """Creates a directory when unpickled."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (self.marker,)


def as_another_user(attack: Callable[[], Any]) -> Callable[[], Any]:
    """Start an attack in a process of another user; the returned function waits for its result."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reading)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            _end_after(60)
            os.write(writing, json.dumps(attack()).encode())
        finally:
            os._exit(0)
    os.close(writing)

    def result() -> Any:
        with open(reading, "rb") as source:
            found = source.read()
        os.waitpid(pid, 0)
        return json.loads(found) if found else None

    return result


def read(pids: Iterable[int]) -> dict[str, str]:
    """Everything that this user can read in /proc about processes, and in the directories of jobs."""
    found = {}
    for pid in pids:
        for name in ("cmdline", "environ", "cwd/x", "fd"):
            with contextlib.suppress(OSError):
                place = Path(f"/proc/{pid}", name)
                content = repr([*place.iterdir()]) if place.is_dir() else place.read_text(errors="replace")
                found[str(place)] = content.replace("\0", " ")
    for directory in Path("/tmp").glob("pilotage-job-*"):
        with contextlib.suppress(OSError):
            found[str(directory)] = repr([*directory.iterdir()])
    return found


def join_as_rank_1(ports: Iterable[int], command_lines: str, marker: str) -> bool:
    """Connect as rank 1 and send a pickle; returns whether the group formed."""
    told = [int(port) for port in re.findall(r"MASTER_PORT\W+(\d+)", command_lines)]
    return any(_in_a_child(partial(_join, port, marker)) for port in dict.fromkeys([*told, *ports]))


def _join(port: int, marker: str) -> None:
    # torch logs a lot about failures.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    place = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=place, rank=1, world_size=2, timeout=timedelta(seconds=20))
    # It is also unpickled here, where this user lacks the rights.
    with contextlib.suppress(OSError):
        dist.all_gather_object([None, None], Evil(marker))


def _in_a_child(attack: Callable[[], None]) -> bool:
    pid = os.fork()
    if not pid:
        _end_after(5)
        status = 1
        try:
            attack()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0


def _end_after(seconds: int) -> None:
    # Not with the handler of the test runner: torch may wait in native code forever.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


def connect(ports: Iterable[int], junk: bytes) -> list[socket.socket]:
    """Connect to gloo's sockets before the peer does, once under each possible number."""
    found = []
    for port in ports:
        for number in SEQUENCE_NUMBERS:
            with contextlib.suppress(OSError):
                connection = socket.socket()
                connection.connect(("127.0.0.1", port))
                connection.sendall(struct.pack("<q", number) + junk)
                found.append(connection)
    return found


def answer_everything(connections: Sequence[socket.socket], seconds: float) -> int:
    """Speak gloo's protocol as the peer, with forged data; returns the number of messages received."""
    count, waiting = 0, dict.fromkeys(connections, b"")
    end = _deadline(seconds)
    while waiting and (left := end()) > 0:
        for connection in _readable(waiting, left):
            with contextlib.suppress(OSError):
                data = connection.recv(1 << 16)
                if data:
                    waiting[connection], handled = _answered(connection, waiting[connection] + data)
                    count += handled
                    continue
            del waiting[connection]
    return count


def _answered(connection: socket.socket, data: bytes) -> tuple[bytes, int]:
    count = 0
    while len(data) >= HEADER.size:
        size, kind, slot, offset, length, other_offset = HEADER.unpack(data[: HEADER.size])
        if len(data) < size:
            break
        data, count = data[size:], count + 1
        if kind == RECEIVE_READY:
            connection.sendall(HEADER.pack(HEADER.size, SEND_READY, slot, offset, length, other_offset))
            poison = (b"\0\0\x80\x42" * (length // 4 + 1))[:length]
            connection.sendall(HEADER.pack(HEADER.size + length, DATA, slot, 0, length, 0) + poison)
        elif kind == SEND_READY:
            connection.sendall(HEADER.pack(HEADER.size, RECEIVE_READY, slot, offset, length, other_offset))
    return data, count


def _deadline(seconds: float) -> Callable[[], float]:
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def _readable(connections: Iterable[socket.socket], seconds: float) -> list[socket.socket]:
    return select.select(list(connections), [], [], min(seconds, 0.5))[0]
