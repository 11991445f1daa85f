import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def wheels(tmp_path_factory) -> list[Path]:
    """The wheels of both distributions, built from this tree without a network."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in (ROOT, ROOT / "dropins"):
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, project]
        built = subprocess.run(command, capture_output=True, text=True)
        assert built.returncode == 0, built.stdout + built.stderr
    return sorted(folder.glob("*.whl"))
