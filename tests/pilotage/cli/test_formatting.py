import pytest

from pilotage.cli.formatting import (
    format_age,
    format_duration,
    format_memory,
    format_rate,
    format_reading,
    format_size,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (10 * 2**30, "10 GiB"),
        (5 * 2**50, "5120.0 TiB"),
    ],
)
def test_sizes(count, text):
    assert format_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (59, "just now"),
        (90, "1 min ago"),
        (7200, "2 h ago"),
        (86400, "24 h ago"),
        (86400 * 40, "40 d ago"),
    ],
)
def test_ages(seconds, text):
    assert format_age(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.4, "0s"), (13, "13s"), (59.9, "59s"), (125, "2m05s"), (11520, "3h12m"), (187200, "2d04h")],
)
def test_times_are_shown_in_two_units(seconds, shown):
    assert format_duration(seconds) == shown


@pytest.mark.parametrize(("value", "shown"), [(0.5, "0.50"), (37.54, "37.5"), (7656.2, "7656")])
def test_rates_are_shown_with_three_digits(value, shown):
    assert format_rate(value) == shown


def test_a_missing_reading_is_not_available():
    assert (format_reading(None, "C"), format_reading(61.4, "C")) == ("N/A", "61C")
    assert (format_memory(None, 1), format_memory(2**30, 2**31)) == ("N/A", "1.0 / 2.0 GiB")
