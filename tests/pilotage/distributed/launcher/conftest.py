"""Fixtures: poprun as a process, hosts for it, and what it leaves behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest


@pytest.fixture
def left_of() -> Callable[[Iterable[int]], list[str]]:
    """Returns what is left of processes: themselves, and shared memory."""

    def find(pids: Iterable[int]) -> list[str]:
        gone = [str(pid) for pid in pids]
        shared = [name for name in os.listdir("/dev/shm") if any(f"_{pid}" in name for pid in gone)]
        return [pid for pid in gone if Path(f"/proc/{pid}").exists()] + shared

    return find


@pytest.fixture
def start_poprun(monkeypatch) -> Callable[..., subprocess.Popen[str]]:
    """Starts poprun with these arguments."""
    for name in ("MASTER_PORT", "MASTER_ADDR", "PILOTAGE_REMOTE_SHELL"):
        monkeypatch.delenv(name, raising=False)

    def start(*words: object, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pilotage.cli.run.poprun", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    return start


@pytest.fixture
def poprun(start_poprun) -> Callable[..., tuple[int, str, str]]:
    """Runs poprun to its end: exit status, output, errors."""

    def run(*words: object, **environment: str) -> tuple[int, str, str]:
        process = start_poprun(*words, **environment)
        try:
            out, err = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    return run


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def two_hosts(tmp_path):
    """A remote shell for two hosts, 10.77.0.1 and 10.77.0.2, connected by a virtual wire."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and the command ip")
    names = [f"pilotage-{os.getpid()}-{number}" for number in (1, 2)]
    made = []
    try:
        try:
            for name in names:
                ip("netns", "add", name)
                made.append(name)
            ip("link", "add", "wire1", "netns", names[0], "type", "veth", "peer", "name", "wire2", "netns", names[1])
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode().strip()}")
        for number, name in enumerate(names, 1):
            ip("-n", name, "address", "add", f"10.77.0.{number}/24", "dev", f"wire{number}")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", f"wire{number}", "up")
        shell = tmp_path / "remote-shell"
        shell.write_text(
            f'#!/bin/sh\nexec ip netns exec pilotage-{os.getpid()}-"${{1##*.}}" '
            'env -i PATH=/usr/bin:/bin PILOTAGE_CACHE_DIR=off PILOTAGE_RUN_DIR=off sh -c "$2"\n'
        )
        shell.chmod(0o755)
        yield str(shell)
    finally:
        for name in made:
            ip("netns", "delete", name)
