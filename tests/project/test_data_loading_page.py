"""The examples on the page about data loading."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "data-loading.md"


@pytest.mark.slow
def test_every_example_on_the_page_gives_the_printed_output():
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF)
    assert found.attempted > 20
    assert found.failed == 0
