"""Processes only end when torch's threads are idle."""

from __future__ import annotations

import threading

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
