"""How long parts take."""

from __future__ import annotations

import pytest

from pilotage.compiler.worker import stopwatch
from pilotage.compiler.worker.stopwatch import Stopwatch


@pytest.fixture
def clock(monkeypatch):
    times = iter([0.0, 1.5, 2.0, 2.25, 3.0, 5.0])
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: next(times))


def test_the_seconds_of_a_part_add_up(clock):
    watch = Stopwatch()
    with watch.part("first"):
        pass
    with watch.part("second"):
        pass
    with watch.part("first"):
        pass
    assert watch.seconds == {"first": 3.5, "second": 0.25}


def test_a_part_that_fails_is_counted(clock):
    watch = Stopwatch()
    with pytest.raises(KeyError), watch.part("failing"):
        raise KeyError
    assert watch.seconds == {"failing": 1.5}
