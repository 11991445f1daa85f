"""`make setup` in a copy of the tree, with an interpreter that has a vendor's torch, without a network."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("src", "dropins", "tools", "Makefile", "pyproject.toml", "requirements-torch.txt", "README.md", "LICENSE")


def make_setup(tree: Path, python: object) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "MAKE", "MFLAGS"))}
    # pip reads "0" here as "do not isolate builds", so the build tools come from this environment too.
    environment = inherited | {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    command = ["make", "setup", f"PYTHON={python}"]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path) -> Path:
    """A copy of what `make setup` needs."""
    copy = tmp_path / "tree"
    copy.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture
def vendors_python(tmp_path) -> Path:
    """An interpreter with a vendor's torch, and with the tools of this environment so that nothing is downloaded."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "vendor"], check=True)
    (packages,) = (tmp_path / "vendor").glob("lib/python3.*/site-packages")
    (packages / "torch").mkdir()
    (packages / "torch/__init__.py").write_text("__version__ = '2.6.0+vendor'\n")
    information = packages / "torch-2.6.0+vendor.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+vendor\n")
    (packages / "tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return tmp_path / "vendor/bin/python"


@pytest.mark.slow
def test_setup_keeps_a_vendors_torch_and_a_second_run_does_nothing(tree, vendors_python):
    first = make_setup(tree, vendors_python)
    assert first.returncode == 0, first.stdout + first.stderr
    assert f"keeping the torch 2.6.0+vendor that {vendors_python} brings" in first.stdout
    seen = "import torch, pilotage; print(torch.__version__, pilotage.__file__)"
    asked = subprocess.run([tree / ".venv/bin/python", "-c", seen], capture_output=True, text=True, check=True, cwd="/")
    assert asked.stdout.split() == ["2.6.0+vendor", str(tree / "src/pilotage/__init__.py")]
    assert not list((tree / ".venv").glob("lib/*/site-packages/torch*"))

    second = make_setup(tree, vendors_python)
    assert second.returncode == 0
    assert "set-up" not in second.stdout


def test_an_old_interpreter_is_refused_in_one_line(tree, tmp_path):
    old = tmp_path / "python2.7"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    refused = make_setup(tree, old)
    assert refused.returncode != 0
    assert f"'{old}' is too old. Pilotage needs Python 3.11 or newer" in refused.stderr
    assert not (tree / ".venv").exists()


def test_a_missing_interpreter_is_named(tree):
    refused = make_setup(tree, "no-such-python")
    assert refused.returncode != 0
    assert "'no-such-python' was not found." in refused.stderr


def planned(target: str) -> str:
    """What `make` would run for a target in an environment that does not exist yet."""
    command = ["make", "--dry-run", target, "VENV=no-such-environment"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_running_installs_what_running_needs_and_checking_the_tools_too():
    assert "--extra examples --extra terminal" in planned("run")
    assert "--extra develop" not in planned("run") + planned("cosmic")
    assert "--extra cosmic" in planned("cosmic")
    for target in ("setup", "check-sources", "test"):
        assert "--extra develop" in planned(target)
    assert "--extra docs" in planned("docs")
    assert "--extra docs" not in planned("test")
