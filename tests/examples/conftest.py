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
# Where `examples.datasets` is found, as by the scripts that use it.
sys.path.append(str(ROOT))


@pytest.fixture
def tutorial_module(monkeypatch) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a module of the tutorial as its own scripts do, and forgets it again."""
    monkeypatch.syspath_prepend(TUTORIAL)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == TUTORIAL:
            del sys.modules[name]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables for a process of its own: few threads, no window, nobody's cache."""
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        # The documents are British and so are we; the pictures in the output need UTF-8 whatever the machine speaks.
        "PYTHONIOENCODING": "utf-8",
    }


@pytest.fixture
def run(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Starts a Python program in an empty directory and waits for its end."""

    def start(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=240,
            check=False,
        )

    return start
