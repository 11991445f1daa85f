"""Parsing sizes and durations."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.errors import OptionError
from pilotage.options import quantities


@pytest.mark.parametrize(
    ("text", "count"),
    [("10GiB", 10 * 2**30), ("500 MB", 500 * 10**6), ("1.5kib", 1536), ("1b", 1), (" 2 TB ", 2 * 10**12)],
)
def test_sizes_have_a_unit(text, count):
    assert quantities.size(text, "it") == count


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 90 * 86400), ("12 h", 43200), ("0s", 0), ("2w", 1209600), ("1.5min", 90)]
)
def test_durations_have_a_unit(text, seconds):
    assert quantities.duration(text, "it") == seconds


@pytest.mark.parametrize("text", ["", "10", "GiB", "10 potatoes", "-1GiB", "0GiB", "1e3MB", "nan", "10GiB!", "٣GiB"])
def test_an_invalid_size_is_refused_with_the_valid_units(text):
    with pytest.raises(OptionError, match=r"PILOTAGE_CACHE_SIZE is .* such as 500MB or 10GiB"):
        quantities.size(text, "PILOTAGE_CACHE_SIZE")


@given(st.text(max_size=30))
def test_any_other_text_is_an_option_error(text):
    for parse in (quantities.size, quantities.duration):
        with contextlib.suppress(OptionError):
            assert parse(text, "it") >= 0
