"""Guards one instance on its host: starts it, forwards signals, and makes sure that nothing outlives the job.

This file runs on its own, also from its text, on hosts that have only Python. The launcher holds the other end of
standard input. The first line says what to start: it may hold secrets, which a command line would show to everybody.
When standard input closes, for whatever reason, the guard stops the instance and everything that it started.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

GRACE_SECONDS = 5.0
"""How long an instance may take to stop by itself."""

NOT_FOUND = 127
END_WITH_PARENT = 1
"""prctl's PR_SET_PDEATHSIG."""


def main() -> int:
    """Run the instance that the first line describes; returns its exit status, or 128 + N if signal N ended it."""
    signals = Signals()
    line = first_line()
    if not line:
        print(
            "Standard input ended before the first line. The remote shell must forward standard input.",
            file=sys.stderr,
        )
        return NOT_FOUND
    request = json.loads(line)
    environment = {**os.environ, **request["environment"]}
    if request["numa_aware"]:
        bind_to_node(request["local_rank"])
    environment = {**resource_shares(environment, request), **environment}
    try:
        process = subprocess.Popen(
            request["command"],
            cwd=request["directory"],
            env=environment,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        print(f"Cannot start the instance: {error}", file=sys.stderr)
        return NOT_FOUND
    signals.forward_to(process)
    stopped = threading.Event()
    threading.Thread(target=stop_when_input_closes, args=(process, stopped), daemon=True).start()
    status = process.wait()
    send(process, signal.SIGKILL)
    if stopped.is_set() and request["job_directory"] is not None:
        # A killed launcher cannot remove it.
        shutil.rmtree(request["job_directory"], ignore_errors=True)
    return status if status >= 0 else 128 - status


class Signals:
    """Forwards signals to the instance, including those that arrive before it starts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._receive)

    def forward_to(self, process: subprocess.Popen[bytes]) -> None:
        """Forward the signals that have arrived, and all later ones."""
        self._process = process
        for number in self._early:
            send(process, number)

    def _receive(self, number: int, _: object) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            send(self._process, number)


def first_line() -> str:
    """The first line of standard input; empty if the launcher is gone before it is complete."""
    found = b""
    while not found.endswith(b"\n"):
        more = os.read(0, 1 << 16)
        if not more:
            return ""
        found += more
    return found.decode()


def stop_when_input_closes(process: subprocess.Popen[bytes], stopped: threading.Event) -> None:
    """Wait until the launcher is gone, then terminate the instance, and kill it if it does not stop."""
    while os.read(0, 1024):
        pass
    stopped.set()
    send(process, signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        send(process, signal.SIGKILL)


def send(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the instance and to everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def end_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def resource_shares(environment: Mapping[str, str], request: Mapping[str, Any]) -> dict[str, str]:
    """Variables for this process's share of the host's threads and cards; the user's own settings take precedence."""
    processes = request["stages"] * (1 if request["numa_aware"] else request["instances_per_host"])
    threads = max(1, len(os.sched_getaffinity(0)) // processes)
    found = {"OMP_NUM_THREADS": str(threads)}
    cards = cards_of(environment)
    if cards:
        found["CUDA_VISIBLE_DEVICES"] = ",".join(cards_for(cards, request))
    return found


def cards_for(cards: list[str], request: Mapping[str, Any]) -> list[str]:
    """The cards of this process: one per replica if there are enough for all instances, otherwise one."""
    stages = request["stages"]
    each = max(1, min(request["replicas"], len(cards) // request["instances_per_host"])) if stages == 1 else 1
    return [card_of(cards, request["local_rank"] * each + number, request["stage"], stages) for number in range(each)]


def cards_of(environment: Mapping[str, str], drivers: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """The cards of this host; empty if the user set CUDA_VISIBLE_DEVICES."""
    if "CUDA_VISIBLE_DEVICES" in environment or not drivers.is_dir():
        return []
    return [str(number) for number, _ in enumerate(drivers.iterdir())]


def card_of(cards: list[str], local_rank: int, stage: int, stages: int) -> str:
    """The card of one process, counted through stages, then instances; processes share cards if there are too few."""
    return cards[(local_rank * stages + stage) % len(cards)]


def bind_to_node(local_rank: int, nodes: Path = Path("/sys/devices/system/node")) -> None:
    """Run on the processors of one NUMA node; memory follows, as the kernel allocates it where it is first touched."""
    lists = sorted(nodes.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name[4:]))
    allowed = os.sched_getaffinity(0)
    sets = [found for path in lists if (found := processors(path.read_text()) & allowed)]
    if sets:
        os.sched_setaffinity(0, sets[local_rank % len(sets)])


def processors(text: str) -> set[int]:
    """The numbers in a list such as 0-3,8."""
    bounds = (part.partition("-") for part in text.strip().split(",") if part)
    return {number for first, _, last in bounds for number in range(int(first), int(last or first) + 1)}


if __name__ == "__main__":
    sys.exit(main())
