"""Processes only end when torch's threads are idle."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pilotage.distributed import shutdown
from pilotage.distributed.shutdown import wait_for_idle_threads


def _count(until: threading.Event) -> None:
    while not until.is_set():
        pass


def test_waiting_threads_count_as_idle():
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        assert wait_for_idle_threads(limit=60)
    finally:
        done.set()
        waiting.join()


def test_a_thread_that_runs_is_waited_for():
    done = threading.Event()
    busy = threading.Thread(target=_count, args=(done,))
    busy.start()
    try:
        assert not wait_for_idle_threads(limit=0.3)
        threading.Timer(0.1, done.set).start()
        assert wait_for_idle_threads(limit=60)
    finally:
        done.set()
        busy.join()


def stat(state, ticks, name="some ) name"):
    """What the kernel says of a thread that has used some clock ticks."""
    return f"7 ({name}) {state} " + " ".join(["0"] * 10 + [str(ticks), "0", "0"])


def later(seconds, file, text):
    """Replace a file after some seconds, at once as the kernel does."""
    new = file.with_name("new")
    new.write_text(text)
    threading.Timer(seconds, new.replace, [file]).start()


@pytest.fixture
def a_thread(tmp_path, monkeypatch):
    """The status file of the only other thread."""
    (tmp_path / "7").mkdir()
    monkeypatch.setattr(shutdown, "_THREADS", tmp_path)
    return tmp_path / "7" / "stat"


def test_a_thread_that_waits_for_a_processor_is_waited_for_beyond_the_limit(a_thread):
    a_thread.write_text(stat("R", 100))
    start = time.monotonic()
    later(0.5, a_thread, stat("S", 100))
    assert wait_for_idle_threads(limit=0.01)
    assert time.monotonic() - start > 0.4


def test_a_thread_of_gloo_is_waited_for_however_long_it_runs(a_thread, monkeypatch):
    ticks = itertools.count(100, 1_000)
    states = itertools.chain("R" * 20, itertools.repeat("S"))
    monkeypatch.setattr(Path, "read_text", lambda _: stat(next(states), next(ticks), "pt_gloo_runloop"))
    assert wait_for_idle_threads(limit=0.01)
    assert next(ticks) > 20_000


def test_a_thread_that_runs_beside_an_idle_one_of_gloo_is_not_waited_for_without_end(a_thread):
    (a_thread.parents[1] / "8").mkdir()
    (a_thread.parents[1] / "8" / "stat").write_text(stat("S", 100, "pt_gloo_runloop"))
    a_thread.write_text(stat("R", 100))
    later(0.2, a_thread, stat("R", 10_000))
    assert not wait_for_idle_threads(limit=0.01)


def test_a_thread_that_waits_for_a_disk_is_not_waited_for_without_end(a_thread, monkeypatch):
    monkeypatch.setattr(shutdown, "_DISK_SECONDS", 0.2)
    a_thread.write_text(stat("D", 100))
    assert not wait_for_idle_threads(limit=0.01)


TENSORS_FREED_BY_GLOO = """
import os, sys, threading, time
import torch, torch.distributed as dist
import pilotage

class Tensor(torch.Tensor):
    def __del__(self):
        if threading.current_thread() is not threading.main_thread():
            end = time.thread_time() + (0.3 if "long" in sys.argv else 0.05)
            while time.thread_time() < end:
                pass
            os.write(1, b"freed ")

if "script" in sys.argv:
    from pilotage.distributed.peers import Peers

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    Peers(world=pilotage.World()).join()
else:
    pilotage.join_world(pilotage.World(), "gloo")
for _ in range(20):
    dist.group.WORLD.allreduce([torch.ones(4).as_subclass(Tensor)])
if "destroyed" in sys.argv:
    dist.destroy_process_group()
os.write(1, b"end ")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ["joined destroyed", *(pytest.param(how, marks=pytest.mark.long) for how in ("joined long", "script"))]
)
def test_a_process_whose_group_still_frees_tensors_does_not_abort(how):
    """The group is ours and left open, for more than two seconds, or destroyed, or it is the script's own."""
    ran = subprocess.run([sys.executable, "-c", TENSORS_FREED_BY_GLOO, *how.split()], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    if "freed" not in ran.stdout:
        pytest.skip("gloo's threads were always faster than this process: they freed no tensor")
