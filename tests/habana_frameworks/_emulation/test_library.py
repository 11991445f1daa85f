"""The library is built once into the user's cache, and checked before it is loaded."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = "from habana_frameworks._emulation.library import library; library()"
COMPILER = """#!{python}
import os, shutil, subprocess, sys
with open({log!r}, "a") as log:
    log.write("built\\n")
target = sys.argv[sys.argv.index("-o") + 1]
if not os.path.exists({kept!r}):
    subprocess.run(["g++", *sys.argv[1:]], check=True)
    shutil.copyfile(target, {kept!r})
else:
    shutil.copyfile({kept!r}, target)
"""
"""Compiles once and caches the result, like ccache."""

INTRUDER = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void intrude(void) { close(open("%s", O_CREAT | O_WRONLY, 0600)); _exit(7); }
"""


def load(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)


class Home:
    """A user with a cache and a compiler."""

    def __init__(self, place: Path, compiler: Path) -> None:
        self.place = place
        self.gaudi = place / "pilotage/gaudi"
        self.environment = {
            "XDG_CACHE_HOME": str(place),
            "HOME": str(place),
            "PATH": "/usr/bin:/bin",
            "CXX": str(compiler),
        }

    @property
    def library(self) -> Path:
        (found,) = self.gaudi.rglob("*.so")
        return found

    def load(self) -> subprocess.CompletedProcess[str]:
        return load(**self.environment)


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    """A compiler that logs its calls."""
    folder = tmp_path_factory.mktemp("compiler")
    script = folder / "remembering-g++"
    script.write_text(
        COMPILER.format(python=sys.executable, log=str(folder / "log"), kept=str(folder / "emulation.so"))
    )
    script.chmod(0o755)
    return script


@pytest.fixture(scope="session")
def built(tmp_path_factory, compiler):
    """A cache with the library in it."""
    home = Home(tmp_path_factory.mktemp("built"), compiler)
    ran = home.load()
    assert ran.returncode == 0, ran.stderr
    return home


@pytest.fixture
def home(tmp_path, built, compiler):
    """A copy of it, to be damaged."""
    shutil.copytree(built.place, tmp_path / "home")
    return Home(tmp_path / "home", compiler)


def test_without_a_compiler_the_import_names_what_is_missing(tmp_path):
    ran = load(XDG_CACHE_HOME=str(tmp_path), CXX="no-such-compiler", PATH="/usr/bin", HOME=str(tmp_path))
    assert ran.returncode != 0
    assert "'no-such-compiler' was not found. Install g++" in ran.stderr


def test_the_output_of_a_failing_compiler_is_shown_and_nothing_is_left(tmp_path):
    ran = load(XDG_CACHE_HOME=str(tmp_path), CXX="false", PATH="/usr/bin", HOME=str(tmp_path))
    assert "ImportError: /usr/bin/false could not build the emulated Gaudi device" in ran.stderr
    assert list((tmp_path / "pilotage/gaudi").iterdir()) == []


def test_the_library_is_built_once_and_sealed(home):
    ran = home.load()
    assert (ran.returncode, ran.stderr) == (0, "")
    (entry,) = home.gaudi.iterdir()
    manifest = json.loads((entry / "manifest.json").read_text())
    assert manifest["files"].keys() == {"emulation.so"}
    assert manifest["parts"].keys() == {"torch", "torch's place", "compiler", "sources"}
    assert {path.stat().st_mode & 0o077 for path in (entry, *entry.iterdir())} == {0}


@pytest.mark.parametrize("length", [0, 4096])
def test_a_truncated_library_is_built_again(home, length):
    os.truncate(home.library, length)
    ran = home.load()
    assert ran.returncode == 0, ran.stderr
    assert "emulation.so is not what was written" in ran.stderr
    assert "It is built again" in ran.stderr
    assert home.load().stderr == ""


@pytest.mark.parametrize("way", ["content", "rights", "owner", "link"])
def test_a_library_written_by_another_user_is_not_executed(tmp_path, home, way):
    canary, library = tmp_path / "canary", home.library
    (tmp_path / "intruder.c").write_text(INTRUDER % canary)
    intruder = tmp_path / "intruder.so"
    subprocess.run(["gcc", "-shared", "-fPIC", str(tmp_path / "intruder.c"), "-o", str(intruder)], check=True)
    library.unlink()
    if way == "link":
        library.symlink_to(intruder)
    else:
        shutil.copyfile(intruder, library)
        library.chmod(0o777 if way == "rights" else 0o600)
    if way == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(library, 12345, 12345)
    ran = home.load()
    assert ran.returncode == 0, ran.stderr
    assert not canary.exists()
    assert "It is built again" in ran.stderr
    assert intruder.exists()


def test_processes_that_start_together_build_the_library_once(tmp_path, built, compiler):
    home = Home(tmp_path, compiler)
    before = (compiler.parent / "log").read_text().count("built")
    runs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=home.environment, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [(run.communicate()[1].count("rror"), run.returncode) for run in runs] == [(0, 0)] * 4
    assert (compiler.parent / "log").read_text().count("built") - before == 1
    assert [path.is_dir() for path in home.gaudi.iterdir()] == [True]


def test_leftovers_of_a_killed_build_are_removed_by_the_next_one(tmp_path, built, compiler):
    home = Home(tmp_path, compiler)
    os.mkfifo(tmp_path / "begun")
    stuck = tmp_path / "stuck-g++"
    stuck.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/begun\nexec sleep 600\n")
    stuck.chmod(0o755)
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env={**home.environment, "CXX": str(stuck)}) as run:
        child = int((tmp_path / "begun").read_text())
        run.send_signal(signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    assert len(list(home.gaudi.iterdir())) > 0
    ran = home.load()
    assert ran.returncode == 0, ran.stderr
    assert [path.is_dir() and not path.name.startswith(".") for path in home.gaudi.iterdir()] == [True]


def test_without_a_cache_the_library_is_built_for_the_process(built, compiler):
    environment = {**Home(Path("/proc/none"), compiler).environment, "HOME": "/proc/none"}
    ran = load(**environment)
    assert ran.returncode == 0, ran.stderr
    assert "is built for this process only. Compiled code cannot be kept in /proc/none" in ran.stderr
