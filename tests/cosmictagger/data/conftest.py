"""The real events, if present, and a few generated ones."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from cosmictagger.data.generator.file import generate_file
from cosmictagger.data.larcv.event_file import EventFile

EVENTS = 5

if find_spec("h5py") is None:
    # The extra "cosmic" is not installed.
    collect_ignore_glob = ["*test_*.py"]


@pytest.fixture(scope="session")
def real_path() -> Path:
    """Five events of the detector's simulation; a file that we may not redistribute."""
    place = os.environ.get("COSMICTAGGER_REAL_FILE", "")
    if not Path(place).is_file():
        pytest.skip("COSMICTAGGER_REAL_FILE names no file")
    return Path(place)


@pytest.fixture
def real_file(real_path):
    with EventFile(real_path) as file:
        yield file


@pytest.fixture(scope="session")
def generated_path(tmp_path_factory) -> Path:
    return generate_file(tmp_path_factory.mktemp("events") / "generated.h5", events=EVENTS, seed=11)


@pytest.fixture
def generated(generated_path):
    with EventFile(generated_path) as file:
        yield file
