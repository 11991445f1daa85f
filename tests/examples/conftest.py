from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "examples" / "fashion_mnist"
# For `examples.datasets`.
sys.path.append(str(ROOT))


@pytest.fixture
def tutorial_module(monkeypatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module of the tutorial as its own scripts do, and removes it again."""
    monkeypatch.syspath_prepend(TUTORIAL)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == TUTORIAL:
            del sys.modules[name]


def environment_in(folder: Path) -> dict[str, str]:
    """Environment of a test process: one thread, no window, an empty cache."""
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "XDG_CACHE_HOME": str(folder / "cache"),
        # The output contains block characters, which need UTF-8 in any locale.
        "PYTHONIOENCODING": "utf-8",
    }


def runner(folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python programs in a directory."""
    environment = environment_in(folder)

    def start(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=folder,
            env=environment | variables,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )

    return start


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a test process: one thread, no window, an empty cache."""
    return environment_in(tmp_path)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a Python program in an empty directory."""
    return runner(tmp_path)


@pytest.fixture(scope="module")
def run_in_shared_folder(tmp_path_factory) -> tuple[Path, Callable[..., subprocess.CompletedProcess[str]]]:
    """A directory that the tests of a module share, and what runs a Python program in it."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PILOTAGE_CACHE_DIR", "off")
        return folder, runner(folder)
