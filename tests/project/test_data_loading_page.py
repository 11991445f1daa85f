"""The page on loading data shows what comes out of what it shows."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "data-loading.md"


@pytest.mark.slow
def test_every_line_of_the_page_gives_what_stands_below_it():
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF)
    assert found.attempted > 20
    assert found.failed == 0
