"""The library is built once into a cache of the user's own."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def load(**environment: str) -> subprocess.CompletedProcess[str]:
    program = "from habana_frameworks._emulation.library import library; library()"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


def test_without_a_compiler_the_import_says_what_is_missing(tmp_path):
    ran = load(XDG_CACHE_HOME=str(tmp_path), CXX="no-such-compiler", PATH="/usr/bin", HOME=str(tmp_path))
    assert ran.returncode != 0
    assert "there is no 'no-such-compiler' here. Install g++" in ran.stderr


def test_a_compiler_that_fails_is_quoted(tmp_path):
    ran = load(XDG_CACHE_HOME=str(tmp_path), CXX="false", PATH="/usr/bin", HOME=str(tmp_path))
    assert "ImportError: /usr/bin/false could not build the emulated Gaudi device" in ran.stderr


@pytest.mark.slow
def test_it_is_built_once(tmp_path):
    place = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    first, second = load(**place), load(**place)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "Building the emulated Gaudi device" in first.stderr
    assert "Building" not in second.stderr
    assert [file.suffix for file in (tmp_path / "pilotage/gaudi").iterdir()] == [".so"]
