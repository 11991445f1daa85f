"""What the tests of the application share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def few_events(tmp_path_factory) -> Path:
    """A folder that the generator keeps its files in."""
    return tmp_path_factory.mktemp("generated")


@pytest.fixture
def real_events() -> Path:
    """Five events of the detector's simulation; a file that is not ours to hand on."""
    place = os.environ.get("COSMICTAGGER_REAL_FILE", "")
    if not Path(place).is_file():
        pytest.skip("COSMICTAGGER_REAL_FILE names no file")
    return Path(place)
