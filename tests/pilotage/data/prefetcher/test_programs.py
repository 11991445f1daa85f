"""Whole programs that end, normally or by force, together with their children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotage.data import SharingMode

pytestmark = pytest.mark.slow

SCRIPT = """
import os, signal, sys
import torch
from torch.utils.data import TensorDataset
from pilotage.data import Loader, Prefetcher, SharingMode

class Stuck:
    def __iter__(self):
        yield torch.tensor([os.getpid()])
        signal.pause()

class Whose(torch.utils.data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.tensor([os.getpid()])

if __name__ == "__main__":
    sources = {
        "reading": TensorDataset(torch.zeros(1000)),
        "stuck": Stuck(),
        "workers": Loader(Whose(), batch_size=2, num_workers=1),
    }
    source = sources[sys.argv[2]]
    prefetcher = Prefetcher(source, sharing_mode=SharingMode[sys.argv[1]])
    item = next(prefetcher)
    others = {prefetcher._process.pid} | (set() if sys.argv[2] == "reading" else {int(item.flatten()[0])})
    maps = [line for who in (os.getpid(), *others) for line in open(f"/proc/{who}/maps")]
    assert any("memfd:pilotage-ring" in line for line in maps) or sys.argv[1] == "FILE_SYSTEM"
    named = [line for line in maps if "/dev/shm/" in line and "(deleted)" not in line]
    assert not named, f"shared memory with a name may outlive its users: {named}"
    print(*others, flush=True)
    if sys.argv[3] == "wait":
        signal.pause()
    elif sys.argv[3] == "fail":
        raise SystemError("an error of the user's")
    elif sys.argv[3] == "leave":
        os._exit(0)
"""


class Run:
    """The script above, running; ``others`` are the processes that it started."""

    def __init__(self, folder: Path, sharing_mode: SharingMode, source: str, then: str) -> None:
        script = folder / "script.py"
        script.write_text(SCRIPT)
        self.main = subprocess.Popen(
            [sys.executable, str(script), sharing_mode.name, source, then],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.others = [int(word) for word in self.main.stdout.readline().split()]

    def finish(self, ends: Callable[[int], bool]) -> tuple[int, str]:
        """Wait for all processes; returns the exit code and standard error."""
        assert all(ends(process) for process in self.others)
        _, errors = self.main.communicate(timeout=200)
        assert all(ends(process) for process in self._session())
        return self.main.returncode, errors

    def _session(self) -> list[int]:
        """The processes that are left of those the script started, including multiprocessing's servers."""
        alive = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdecimal() and os.getsid(int(entry.name)) == self.main.pid:
                    alive.append(int(entry.name))
        return alive


ALL_SHARING_MODES = [
    SharingMode.FORK,
    *(
        pytest.param(sharing_mode, marks=pytest.mark.long)
        for sharing_mode in SharingMode
        if sharing_mode is not SharingMode.FORK
    ),
]

ALL_SOURCES = [
    "stuck",
    *(pytest.param(source, marks=pytest.mark.long) for source in ("reading", "workers")),
]


@pytest.mark.parametrize("sharing_mode", ALL_SHARING_MODES, ids=str)
@pytest.mark.parametrize("source", ALL_SOURCES)
def test_a_killed_program_leaves_no_process_behind(tmp_path, ends, sharing_mode, source):
    run = Run(tmp_path, sharing_mode, source, "wait")
    assert run.others
    run.main.kill()
    assert run.finish(ends)[0] == -signal.SIGKILL


@pytest.mark.parametrize("sharing_mode", ALL_SHARING_MODES, ids=str)
@pytest.mark.parametrize("source", ALL_SOURCES)
@pytest.mark.parametrize("everyone", [True, pytest.param(False, marks=pytest.mark.long)], ids=["group", "program"])
def test_an_interrupted_program_ends_quietly_with_all_its_processes(tmp_path, ends, sharing_mode, source, everyone):
    run = Run(tmp_path, sharing_mode, source, "wait")
    if everyone:
        os.killpg(run.main.pid, signal.SIGINT)
    else:
        run.main.send_signal(signal.SIGINT)
    code, errors = run.finish(ends)
    assert code == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("sharing_mode", ALL_SHARING_MODES, ids=str)
@pytest.mark.parametrize(
    ("then", "code"),
    [("fail", 1), pytest.param("return", 0, marks=pytest.mark.long), pytest.param("leave", 0, marks=pytest.mark.long)],
)
def test_a_program_that_ends_without_terminating_leaves_no_process_behind(tmp_path, ends, sharing_mode, then, code):
    run = Run(tmp_path, sharing_mode, "reading", then)
    found, errors = run.finish(ends)
    assert found == code
    assert ("SystemError" in errors) == (then == "fail")
    assert "resource_tracker" not in errors


def test_a_script_without_a_main_guard_gets_an_explanation(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import torch\nfrom pilotage.data import Prefetcher\nPrefetcher([torch.ones(1)])\nprint('unreachable')"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 1
    assert "if __name__ == '__main__'" in ran.stderr
    assert "unreachable" not in ran.stdout
