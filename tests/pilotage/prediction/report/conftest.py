"""Pages in a headless Chromium, driven through its debugging pipe."""

import pytest

from tools.chromium import Chromium, find_chromium


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A running browser; skips where there is none."""
    path = find_chromium()
    if path is None:
        pytest.skip("no chromium here")
    with Chromium(path, tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
