"""Pages in a headless Chromium, driven through its debugging pipe."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chromium import Chromium, find_chromium


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A running browser; skips where there is none."""
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium here")
    with Chromium(path, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
