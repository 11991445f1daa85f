import pytest

from pilotage.cli.cache import words


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
    assert words.size(count) == text


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
    assert words.age(seconds) == text
