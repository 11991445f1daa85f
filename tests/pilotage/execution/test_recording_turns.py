"""Calls run concurrently, and a recording excludes them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from pilotage.execution.recording_turns import RecordingTurns


def test_calls_run_concurrently():
    turns, together = RecordingTurns(), threading.Barrier(3)

    def call():
        with turns.call():
            together.wait(30)

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(call) for _ in range(3)]:
            future.result()


def test_no_call_runs_during_a_recording():
    turns, calls, recordings, seen = RecordingTurns(), [], [], []

    def work(number):
        for turn in range(30):
            with turns.call():
                calls.append(1)
                if (turn + number) % 5 == 0:
                    calls.pop()
                    with turns.recording():
                        recordings.append(1)
                        seen.append((len(calls), len(recordings)))
                        recordings.pop()
                    calls.append(1)
                assert not recordings
                calls.pop()

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, number) for number in range(4)]:
            future.result()
    assert len(seen) == 24
    assert set(seen) == {(0, 1)}
