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
def test_it_stays_with_the_fastest_or_with_what_torch_would_take(available, times):
    def seconds_of(count):
        return times.get(count, 1.0)

    tuner = ThreadTuner(available)
    tried = set(settled(tuner, seconds_of))
    assert {1, available} <= tried
    assert tuner.chosen in tried
    assert seconds_of(tuner.chosen) <= seconds_of(available)
    if min(map(seconds_of, tried)) < 0.9 * seconds_of(available):
        assert seconds_of(tuner.chosen) == min(map(seconds_of, tried))


def test_the_first_call_does_not_count():
    tuner = ThreadTuner(2)
    slow_start = iter([1000.0])
    settled(tuner, lambda count: next(slow_start, 1.0 if count == 2 else 2.0))
    assert tuner.chosen == 2


def run(tuner, calls, seconds_of):
    """So many calls of a settled or searching tuner; the numbers of threads they had."""
    had = []
    for _ in range(calls):
        had.append(tuner.present)
        tuner.note(seconds_of(tuner.present))
    return had


QUIET = {1: 0.02, 2: 0.01}
BUSY = {1: 0.03, 2: 0.3}


def test_it_looks_again_when_others_take_the_cores_and_when_they_are_gone(monkeypatch):
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


def test_on_a_machine_that_stays_busy_looking_takes_ever_less_of_the_time(monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (5.0, 5.0, 5.0))
    tuner, seconds = ThreadTuner(2), {1: 0.03, 2: 0.3}
    settled(tuner, seconds.get)
    had = run(tuner, 8_000, seconds.get)
    assert had[:1_000].count(2) > 10
    assert had[-4_000:].count(2) <= 32


def test_now_and_then_it_looks_again_on_a_quiet_machine(monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 1.0, 1.0))
    tuner = ThreadTuner(2)
    settled(tuner, {1: 0.1, 2: 0.2}.get)  # somebody passed by
    assert tuner.chosen == 1
    run(tuner, 1_000, {1: 0.1, 2: 0.05}.get)
    assert tuner.chosen == 2


def test_a_few_calls_that_take_long_count(monkeypatch):
    tuner, calls = ThreadTuner(2), iter(range(1_000))
    settled(tuner, lambda count: 1.5 if count == 1 else (10.0 if next(calls) % 4 == 0 else 1.0))
    assert tuner.chosen == 1


def test_what_runs_another_way_is_not_taken_for_slow():
    tuner = ThreadTuner(2)
    settled(tuner, QUIET.get)
    tuner.forget_speed()
    assert set(run(tuner, 100, {2: 0.05}.get)) == {2}


def test_one_core_leaves_nothing_to_try():
    assert ThreadTuner(1).chosen == 1


def test_what_was_found_on_a_busy_machine_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (20.0, 1.0, 1.0))
    kept = tmp_path / "program.threads"
    settled(ThreadTuner(8, kept), float)
    assert not kept.exists()


def test_what_was_found_is_kept_for_the_next_run(tmp_path, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.0, 9.0, 9.0))
    kept = tmp_path / "program.threads"
    settled(ThreadTuner(8, kept), float)
    assert ThreadTuner(8, kept).chosen == 1
    with monkeypatch.context() as busy:
        busy.setattr("os.getloadavg", lambda: (20.0, 1.0, 1.0))
        assert ThreadTuner(8, kept).chosen is None
    # On another number of cores it is looked for again.
    assert ThreadTuner(4, kept).chosen is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"available": 8}', '{"available": 8, "threads": 77}'])
def test_a_damaged_file_is_looked_over(tmp_path, content):
    kept = tmp_path / "program.threads"
    kept.write_text(content)
    assert ThreadTuner(8, kept).chosen is None


def test_a_place_that_cannot_be_written_to_costs_nothing(tmp_path):
    tuner = ThreadTuner(8, tmp_path / "missing" / "program.threads")
    settled(tuner, float)
    assert tuner.chosen == 1


def test_the_users_own_number_comes_back():
    before = torch.get_num_threads()

    def fail_in_two_threads():
        with using_threads(2):
            assert torch.get_num_threads() == 2
            raise KeyError

    with pytest.raises(KeyError):
        fail_in_two_threads()
    assert torch.get_num_threads() == before
