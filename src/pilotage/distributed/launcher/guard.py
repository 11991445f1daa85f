"""Stands beside one instance on its host: starts it, passes signals on, and sees to it that nothing outlives the job.

Runs by itself, from this file or from its text, on hosts that have nothing but Python. The launcher holds the other end
of standard input. The first line says what to start; it may hold secrets, which a command line would show to everybody.
When standard input closes, for whatever reason, the instance and all that it has started is ended.
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

PATIENCE = 5.0
"""Seconds that an instance has to end by itself."""

NOT_FOUND = 127
END_WITH_PARENT = 1
"""prctl's PR_SET_PDEATHSIG."""


def main() -> int:
    """Run the instance that the first line describes and return its exit status, 128 + N where signal N ended it."""
    signals = Signals()
    line = first_line()
    if not line:
        print("Standard input ended before it said what to start: a remote shell has to pass it on.", file=sys.stderr)
        return NOT_FOUND
    told = json.loads(line)
    environment = {**os.environ, **told["environment"]}
    if told["numa_aware"]:
        bind_to_node(told["local_rank"])
    environment = {**shares(environment, told), **environment}
    try:
        process = subprocess.Popen(
            told["command"],
            cwd=told["directory"],
            env=environment,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        print(f"The instance cannot be started: {error}", file=sys.stderr)
        return NOT_FOUND
    signals.pass_to(process)
    ended = threading.Event()
    threading.Thread(target=end_when_input_closes, args=(process, ended), daemon=True).start()
    status = process.wait()
    send(process, signal.SIGKILL)
    if ended.is_set() and told["job_directory"] is not None:
        # A launcher that was killed cannot do it.
        shutil.rmtree(told["job_directory"], ignore_errors=True)
    return status if status >= 0 else 128 - status


class Signals:
    """Keeps signals that come before there is an instance, and passes on all others."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._receive)

    def pass_to(self, process: subprocess.Popen[bytes]) -> None:
        """Let the instance have what comes, and what has come."""
        self._process = process
        for number in self._early:
            send(process, number)

    def _receive(self, number: int, _: object) -> None:
        if self._process is None:
            self._early.append(number)
        else:
            send(self._process, number)


def first_line() -> str:
    """What the launcher says first; empty where it is gone before it has said it."""
    found = b""
    while not found.endswith(b"\n"):
        more = os.read(0, 1 << 16)
        if not more:
            return ""
        found += more
    return found.decode()


def end_when_input_closes(process: subprocess.Popen[bytes], ended: threading.Event) -> None:
    """Wait until the launcher is gone, and end the instance: gently, then not."""
    while os.read(0, 1024):
        pass
    ended.set()
    send(process, signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        send(process, signal.SIGKILL)


def send(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the instance and to all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it is gone."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def shares(environment: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, str]:
    """This process's share of the host's threads and cards; what the user has set counts more."""
    sharing = told["stages"] * (1 if told["numa_aware"] else told["instances_per_host"])
    threads = max(1, len(os.sched_getaffinity(0)) // sharing)
    found = {"OMP_NUM_THREADS": str(threads)}
    cards = cards_of(environment)
    if cards:
        found["CUDA_VISIBLE_DEVICES"] = ",".join(cards_for(cards, told))
    return found


def cards_for(cards: list[str], told: Mapping[str, Any]) -> list[str]:
    """The cards of this process: one for each of its replicas where there are enough for all instances, else one."""
    stages = told["stages"]
    each = max(1, min(told["replicas"], len(cards) // told["instances_per_host"])) if stages == 1 else 1
    return [card_of(cards, told["local_rank"] * each + number, told["stage"], stages) for number in range(each)]


def cards_of(environment: Mapping[str, str], drivers: Path = Path("/proc/driver/nvidia/gpus")) -> list[str]:
    """The cards of this host; none where the user has chosen some."""
    if "CUDA_VISIBLE_DEVICES" in environment or not drivers.is_dir():
        return []
    return [str(number) for number, _ in enumerate(drivers.iterdir())]


def card_of(cards: list[str], local_rank: int, stage: int, stages: int) -> str:
    """A card of one process, counted on from stage to stage and instance to instance; where they run out, shared."""
    return cards[(local_rank * stages + stage) % len(cards)]


def bind_to_node(local_rank: int, nodes: Path = Path("/sys/devices/system/node")) -> None:
    """Stay on the processors of one NUMA node; memory follows, as it is given out where it is touched first."""
    lists = sorted(nodes.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name[4:]))
    allowed = os.sched_getaffinity(0)
    sets = [found for path in lists if (found := processors(path.read_text()) & allowed)]
    if sets:
        os.sched_setaffinity(0, sets[local_rank % len(sets)])


def processors(text: str) -> set[int]:
    """The numbers of a list such as 0-3,8."""
    bounds = (part.partition("-") for part in text.strip().split(",") if part)
    return {number for first, _, last in bounds for number in range(int(first), int(last or first) + 1)}


if __name__ == "__main__":
    sys.exit(main())
