import pytest

from pilotage.cli.monitor.words import duration, memory, pace, rate, reading
from pilotage.monitoring.announcement import Activity


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0s"), (13, "13s"), (59.9, "59s"), (125, "2m05s"), (11520, "3h12m"), (187200, "2d04h")],
)
def test_times_are_shown_in_two_units(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.5, "0.50"), (37.54, "37.5"), (7656.2, "7656")])
def test_rates_are_shown_with_three_digits(value, shown):
    assert rate(value) == shown


def test_what_a_sensor_does_not_say_is_not_available():
    assert (reading(None, "C"), reading(61.4, "C")) == ("N/A", "61C")
    assert (memory(None, 1), memory(2**30, 2**31)) == ("N/A", "1.0 / 2.0 GiB")


def test_a_program_without_a_pace_says_what_it_does(program):
    assert pace(program()) == "375"
    assert pace(program(activity=Activity.COMPILING)) == "compiling"
    assert pace(program(activity=Activity.STARTING)) == "first call"
    assert pace(program(activity=Activity.IDLE)) == "idle"
    assert pace(program(rate=None)) == "running"
