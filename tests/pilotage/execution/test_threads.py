"""How many threads a program gets."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pilotage.execution.threads import ThreadTuner, using_threads


def settled(tuner, seconds_of):
    tried = []
    for _ in range(100):
        if tuner.chosen is not None:
            return tried
        tried.append(tuner.present)
        tuner.note(seconds_of(tuner.present))
    raise AssertionError("it never settles")


@given(available=st.integers(2, 64), times=st.dictionaries(st.integers(1, 64), st.floats(0.1, 10)))
def test_the_fastest_thread_count_or_torchs_default_is_used(available, times):
    def seconds_of(count):
        return times.get(count, 1.0)

    tuner = ThreadTuner(available)
    tried = set(settled(tuner, seconds_of))
    assert {1, available} <= tried
    assert tuner.chosen in tried
    assert seconds_of(tuner.chosen) <= seconds_of(available)
    if min(map(seconds_of, tried)) < 0.9 * seconds_of(available):
        assert seconds_of(tuner.chosen) == min(map(seconds_of, tried))


def test_the_first_call_is_not_timed():
    tuner = ThreadTuner(2)
    slow_start = iter([1000.0])
    settled(tuner, lambda count: next(slow_start, 1.0 if count == 2 else 2.0))
    assert tuner.chosen == 2


def run(tuner, calls, seconds_of):
    """The number of threads in each of several calls."""
    had = []
    for _ in range(calls):
        had.append(tuner.present)
        tuner.note(seconds_of(tuner.present))
    return had


QUIET = {1: 0.02, 2: 0.01}
BUSY = {1: 0.03, 2: 0.3}


def test_thread_counts_are_tried_again_when_the_load_of_the_machine_changes(monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 1.0, 1.0))
    tuner = ThreadTuner(2)
    settled(tuner, QUIET.get)
    assert set(run(tuner, 500, QUIET.get)) == {2}
    monkeypatch.setattr("os.getloadavg", lambda: (5.0, 1.0, 1.0))
    busy = run(tuner, 1_000, BUSY.get)
    assert busy.count(2) < 100
    assert tuner.chosen == 1
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 5.0, 1.0))
    run(tuner, 3_000, QUIET.get)
    assert set(run(tuner, 500, QUIET.get)) == {2}


def test_on_a_busy_machine_trying_takes_less_and_less_time(monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (5.0, 5.0, 5.0))
    tuner, seconds = ThreadTuner(2), {1: 0.03, 2: 0.3}
    settled(tuner, seconds.get)
    had = run(tuner, 8_000, seconds.get)
    assert had[:1_000].count(2) > 10
    assert had[-4_000:].count(2) <= 32


def test_on_a_quiet_machine_thread_counts_are_tried_again_now_and_then(monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 1.0, 1.0))
    tuner = ThreadTuner(2)
    settled(tuner, {1: 0.1, 2: 0.2}.get)  # a short disturbance
    assert tuner.chosen == 1
    run(tuner, 1_000, {1: 0.1, 2: 0.05}.get)
    assert tuner.chosen == 2


def test_occasional_long_calls_count(monkeypatch):
    tuner, calls = ThreadTuner(2), iter(range(1_000))
    settled(tuner, lambda count: 1.5 if count == 1 else (10.0 if next(calls) % 4 == 0 else 1.0))
    assert tuner.chosen == 1


def test_slower_code_does_not_restart_the_trials():
    tuner = ThreadTuner(2)
    settled(tuner, QUIET.get)
    tuner.forget_speed()
    assert set(run(tuner, 100, {2: 0.05}.get)) == {2}


def test_with_one_core_nothing_is_tried():
    assert ThreadTuner(1).chosen == 1


def test_results_from_a_busy_machine_are_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (20.0, 1.0, 1.0))
    kept = tmp_path / "program.threads"
    settled(ThreadTuner(8, kept), float)
    assert not kept.exists()


def test_results_are_saved_for_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 9.0, 9.0))
    kept = tmp_path / "program.threads"
    settled(ThreadTuner(8, kept), float)
    assert ThreadTuner(8, kept).chosen == 1
    with monkeypatch.context() as busy:
        busy.setattr("os.getloadavg", lambda: (20.0, 1.0, 1.0))
        assert ThreadTuner(8, kept).chosen is None
    # With another number of cores the search starts again.
    assert ThreadTuner(4, kept).chosen is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"available": 8}', '{"available": 8, "threads": 77}'])
def test_a_damaged_file_is_ignored(tmp_path, content):
    kept = tmp_path / "program.threads"
    kept.write_text(content)
    assert ThreadTuner(8, kept).chosen is None


def test_an_unwritable_directory_is_ignored(tmp_path):
    tuner = ThreadTuner(8, tmp_path / "missing" / "program.threads")
    settled(tuner, float)
    assert tuner.chosen == 1


def test_the_users_thread_count_is_restored():
    before = torch.get_num_threads()

    def fail_in_two_threads():
        with using_threads(2):
            assert torch.get_num_threads() == 2
            raise KeyError

    with pytest.raises(KeyError):
        fail_in_two_threads()
    assert torch.get_num_threads() == before
