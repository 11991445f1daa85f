"""Running all processes of a job until they have ended, or one of them has failed."""

from __future__ import annotations

import fcntl
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pilotage.distributed.launcher.guard import PATIENCE
from pilotage.distributed.launcher.output import TaggedOutput
from pilotage.errors import OptionError

_ENDED = (0, 128 + signal.SIGTERM, 128 + signal.SIGKILL)
"""How processes end that do so well, or because they are told to."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one process ended."""

    process: int
    status: int
    """Its exit status, 128 + N where signal N ended it."""


@dataclass(frozen=True, slots=True)
class Start:
    """How one process is started."""

    command: Sequence[str]
    line: bytes
    """What it reads first from standard input, which then stays open."""


class Processes:
    """The processes of one job on their way."""

    def __init__(self, starts: Sequence[Start], output: TaggedOutput) -> None:
        self._endings: queue.SimpleQueue[Ending] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        self.interrupted: int | None = None
        """The signal that was passed on, if there was one."""
        try:
            for start in starts:
                self._processes.append(_started(start))
        except BaseException:
            self.end()
            raise
        for number, process in enumerate(self._processes):
            assert process.stdout is not None
            assert process.stderr is not None
            self._readers += [
                output.follow(number, "stdout", process.stdout),
                output.follow(number, "stderr", process.stderr),
            ]
            threading.Thread(target=self._wait_for, args=(number, process), daemon=True).start()

    def wait(self) -> list[Ending]:
        """Wait until all have ended well, or for the first failure; it ends all others.

        Returns the failures: the first one, and those of others that failed by themselves before they were ended.
        """
        for done in range(1, len(self._processes) + 1):
            ending = self._endings.get()
            if ending.status:
                self.end()
                others = [self._endings.get() for _ in self._processes[done:]]
                return [ending, *(other for other in others if other.status not in _ENDED)]
        self._finish_reading()
        return []

    def end(self) -> None:
        """Have the guards end their instances by closing what they listen to, and wait for that."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(2 * PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        self._finish_reading()

    @contextmanager
    def passing_on_signals(self) -> Iterator[None]:
        """Give the instances what is sent to the launcher, Ctrl-C for instance."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._pass_on) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _pass_on(self, number: int, _: object) -> None:
        again, self.interrupted = self.interrupted is not None, number
        for process in self._processes:
            if again and process.stdin is not None:
                # Asked twice, so that it is urgent: the guards end what does not end by itself.
                process.stdin.close()
            elif process.poll() is None:
                process.send_signal(number)

    def _wait_for(self, number: int, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        self._endings.put(Ending(number, status if status >= 0 else 128 - status))

    def _finish_reading(self) -> None:
        for reader in self._readers:
            reader.join(PATIENCE)


def _started(start: Start) -> subprocess.Popen[bytes]:
    # In a group of its own, so that Ctrl-C in a terminal reaches it once, through the launcher.
    process = subprocess.Popen(
        start.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    assert process.stdin is not None
    try:
        _tell(process.stdin.fileno(), start.line)
    except BaseException:
        process.stdin.close()
        process.kill()
        process.communicate()
        raise
    return process


def _tell(pipe: int, line: bytes) -> None:
    """Write the line at once: whatever carries it to another host may take its time to read, and the others wait."""
    capacity = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    if len(line) > capacity:
        try:
            capacity = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, len(line))
        except OSError:
            raise OptionError(
                f"The command and the variables of an instance take {len(line)} bytes, and the system passes on at most about "
                "1 MiB at once. Set fewer or shorter variables. Nothing was started."
            ) from None
    # A process that is gone already is reported by its status.
    with suppress(BrokenPipeError):
        os.write(pipe, line)
