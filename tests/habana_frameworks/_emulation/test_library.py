"""The library is built once into the user's cache, and checked before it is loaded."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from habana_frameworks._emulation.building import CannotBuildError

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
    assert issubclass(CannotBuildError, ImportError)
    assert "CannotBuildError: /usr/bin/false could not build the emulated Gaudi device" in ran.stderr
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


@pytest.mark.parametrize("named", [False, True])
def test_an_unusable_cache_is_an_import_error_that_names_the_variable(compiler, named):
    environment = {**Home(Path("/proc/none"), compiler).environment, "HOME": "/proc/none"}
    ran = load(**environment, **({"PILOTAGE_CACHE_DIR": "/proc/other"} if named else {}))
    assert ran.returncode != 0
    place = "/proc/other/gaudi" if named else "/proc/none/pilotage/gaudi"
    assert f"The emulated Gaudi device cannot be kept in {place}" in ran.stderr
    assert "ImportError" in ran.stderr or "CannotBuildError" in ran.stderr
    assert "Set PILOTAGE_CACHE_DIR (or XDG_CACHE_HOME) to a directory" in ran.stderr


def test_the_library_can_be_built_ahead_of_time_into_a_directory(tmp_path, built, compiler):
    home = Home(tmp_path / "home", compiler)
    command = [sys.executable, "-m", "habana_frameworks.build", "--directory", str(tmp_path / "image")]
    ran = subprocess.run(command, capture_output=True, text=True, env=home.environment)
    assert ran.returncode == 0, ran.stderr
    kept = Path(ran.stdout.strip())
    assert kept.is_relative_to(tmp_path / "image/gaudi")
    assert re.search(r"was built in \d+ s", ran.stderr)
    assert "No Gaudi found" not in ran.stderr  # nothing is registered
    used = load(**home.environment | {"CXX": "no-such-compiler", "PILOTAGE_CACHE_DIR": str(tmp_path / "image")})
    # Another compiler would be another library: the same one is loaded without a word.
    assert "no-such-compiler" in used.stderr
    used = load(**home.environment, PILOTAGE_CACHE_DIR=str(tmp_path / "image"))
    assert (used.returncode, used.stderr) == (0, "")
    failed = subprocess.run(command, capture_output=True, text=True, env=home.environment | {"CXX": "none"})
    assert (failed.returncode, failed.stderr.count("'none' was not found")) == (1, 1)


def test_libraries_that_look_for_a_gaudi_find_none_where_it_cannot_be_built(tmp_path):
    # Accelerate's is_hpu_available() and transformers' ask in this way.
    program = """
import importlib.util, torch
assert importlib.util.find_spec("habana_frameworks.torch") is not None
import habana_frameworks.torch as ht
import habana_frameworks.torch.distributed.hccl
assert not (hasattr(torch, "hpu") and torch.hpu.is_available())
try:
    ht.core
except ImportError as error:
    assert "Install g++" in str(error), error
else:
    raise SystemExit("no error")
"""
    environment = {
        "XDG_CACHE_HOME": str(tmp_path),
        "CXX": "no-such-compiler",
        "PATH": "/usr/bin",
        "HOME": str(tmp_path),
    }
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert "Until then the device hpu is missing" in ran.stderr


def test_a_terminal_shows_how_long_the_build_takes(tmp_path):
    leader, follower = pty.openpty()
    slow = tmp_path / "slow-g++"
    slow.write_text("#!/bin/sh\nsleep 1.2\nexit 1\n")
    slow.chmod(0o755)
    environment = {"XDG_CACHE_HOME": str(tmp_path), "CXX": str(slow), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=follower, env=environment) as run:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 1000)
            except OSError:  # the other end was closed
                break
            shown += piece
    os.close(leader)
    assert run.returncode != 0
    assert re.search(rb"\rBuilding the emulated Gaudi device \[ +\] +1 s", shown), shown
