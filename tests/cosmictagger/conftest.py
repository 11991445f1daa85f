"""What the tests of the application share."""

import os
from pathlib import Path

import pytest

LAUNCHER_VARIABLES = (
    "POPDIST_NUM_TOTAL_REPLICAS",
    "RANK",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "SLURM_STEP_ID",
    "PMI_RANK",
)


@pytest.fixture(autouse=True)
def started_by_nobody(monkeypatch):
    """No launcher has left anything, and what a run sets for vendors' packages ends with the test."""
    for name in LAUNCHER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("PT_HPU_LAZY_MODE", "PILOTAGE_TIER", "ID", "LOCAL_RANK"):
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


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
