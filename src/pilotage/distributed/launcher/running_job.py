"""The running processes of a job: start them, wait for them, stop all when one fails."""

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

from pilotage.distributed.launcher.guard import GRACE_SECONDS
from pilotage.distributed.launcher.output import TaggedOutput
from pilotage.errors import OptionError

_EXPECTED_STATUSES = (0, 128 + signal.SIGTERM, 128 + signal.SIGKILL)
"""The exit statuses of processes that succeeded, or that were stopped."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How one process ended."""

    process: int
    status: int
    """Its exit status, or 128 + N if signal N ended it."""


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """How to start one process."""

    command: Sequence[str]
    first_line: bytes
    """The first line on its standard input, which then stays open."""


class RunningJob:
    """The processes of a job that was started."""

    def __init__(self, starts: Sequence[ProcessStart], output: TaggedOutput) -> None:
        self._endings: queue.SimpleQueue[ProcessExit] = queue.SimpleQueue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        self.interrupted: int | None = None
        """The signal that was forwarded, if any."""
        try:
            for start in starts:
                self._processes.append(_started(start))
        except BaseException:
            self.stop()
            raise
        for number, process in enumerate(self._processes):
            assert process.stdout is not None
            assert process.stderr is not None
            self._readers += [
                output.follow(number, "stdout", process.stdout),
                output.follow(number, "stderr", process.stderr),
            ]
            threading.Thread(target=self._wait_for, args=(number, process), daemon=True).start()

    def wait(self) -> list[ProcessExit]:
        """Wait until all processes succeed, or stop all of them at the first failure.

        Returns the failures: the first one, and those of others that failed before they were stopped.
        """
        for done in range(1, len(self._processes) + 1):
            ending = self._endings.get()
            if ending.status:
                self.stop()
                others = [self._endings.get() for _ in self._processes[done:]]
                return [ending, *(other for other in others if other.status not in _EXPECTED_STATUSES)]
        self._finish_reading()
        return []

    def stop(self) -> None:
        """Close the standard input of all guards, which then stop their instances, and wait for that."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in self._processes:
            try:
                process.wait(2 * GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._finish_reading()

    @contextmanager
    def forwarding_signals(self) -> Iterator[None]:
        """Forward signals, such as Ctrl-C, to the instances."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._forward) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, number: int, _: object) -> None:
        again, self.interrupted = self.interrupted is not None, number
        for process in self._processes:
            if again and process.stdin is not None:
                # The second signal: the guards stop instances that do not stop by themselves.
                process.stdin.close()
            elif process.poll() is None:
                process.send_signal(number)

    def _wait_for(self, number: int, process: subprocess.Popen[bytes]) -> None:
        status = process.wait()
        self._endings.put(ProcessExit(number, status if status >= 0 else 128 - status))

    def _finish_reading(self) -> None:
        for reader in self._readers:
            reader.join(GRACE_SECONDS)
        for process in self._processes:
            # Readers close the pipes that they have read to the end.
            pipes = (process.stdin,) if self._readers else (process.stdin, process.stdout, process.stderr)
            for pipe in pipes:
                if pipe is not None:
                    pipe.close()


def _started(start: ProcessStart) -> subprocess.Popen[bytes]:
    # A separate process group, so that Ctrl-C in a terminal arrives once, through the launcher.
    process = subprocess.Popen(
        start.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    assert process.stdin is not None
    try:
        _write_at_once(process.stdin.fileno(), start.first_line)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return process


def _write_at_once(pipe: int, line: bytes) -> None:
    """Write the line without blocking on the reader: a slow remote shell must not delay the other processes."""
    capacity = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    if len(line) > capacity:
        try:
            capacity = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, len(line))
        except OSError:
            raise OptionError(
                f"The command and the variables of an instance take {len(line)} bytes. The system accepts about 1 MiB. "
                "Set fewer or shorter variables. Nothing was started."
            ) from None
    # The exit status reports a process that is already gone.
    with suppress(BrokenPipeError):
        os.write(pipe, line)
