"""Whatever happens to the files of a cache, a program gets its own code as written, or none."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.tuning import Tuning
from pilotage.errors import ProgramFileError
from pilotage.options.choices import Tier
from pilotage.storage.fingerprint import Fingerprint

PROGRAMS = {
    name: Fingerprint({"operations": name, "torch": "2.13", "device": "cpu", "inputs": "float32 (4, 8)"})
    for name in ("relu", "tanh")
}
TUNINGS = {
    "relu": Tuning(tier=Tier.COMPILED, seconds={"graph": 2.0, "compiled": 1.0}),
    "tanh": Tuning(tier=Tier.COMPILED, channels_last=True, seconds={"graph": 2.0, "compiled": 1.5}),
}
CONTENTS = {
    name: {
        "train/0-0123456789abcdef.so": bytes(range(256)) + name.encode(),
        "train/1-fedcba9876543210.so": bytes(range(128)) + name.encode(),
        "train/wrapper.py": f"call = '{name}'".encode(),
        "train/code.json": json.dumps({"kernels": [name]}).encode(),
        "update/wrapper.py": f"update = '{name}'".encode(),
    }
    for name in PROGRAMS
}
DEEP = "[" * 100_000
OLD = json.dumps({"parts": {}, "tuning": {"tier": "compiled"}, "digests": {}})
MUTATIONS = (
    "flip",
    "cut",
    "append",
    "remove",
    "rename",
    "swap",
    "swap entries",
    "copy entry",
    "fifo",
    "socket",
    "directory",
    "link",
    "rights",
    "owner",
    "add",
    "edit",
    "rewrite",
)


def pick(draw, choices):
    """One of several things, whose number may differ from run to run."""
    return choices[draw(st.integers(0, 9999)) % len(choices)]


def build(cache, name):
    with cache.building(PROGRAMS[name]) as folder:
        for file, content in CONTENTS[name].items():
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(content)
        write_manifest(folder, PROGRAMS[name], TUNINGS[name])


def is_right(cache, name):
    """Look for a program; what is found must be what was written for it."""
    begun = time.monotonic()
    try:
        entry = cache.find(PROGRAMS[name])
    except ProgramFileError:
        return False
    finally:
        assert time.monotonic() - begun < 5
    if entry is None:
        return False
    assert entry.tuning == TUNINGS[name]
    assert entry.parts == PROGRAMS[name].parts
    files = entry.files()
    files.pop("manifest.json")
    assert files == CONTENTS[name]
    # Libraries are loaded by their path.
    assert {file: (entry.folder / file).read_bytes() for file in CONTENTS[name]} == CONTENTS[name]
    return True


def clear_of(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def mutate(draw, cache, outside):
    everything = sorted(path for path in cache.root.rglob("*") if os.path.lexists(path))
    if not everything:
        return
    path = pick(draw, everything)
    files = [each for each in everything if each.is_file() and not each.is_symlink()]
    match draw(st.sampled_from(MUTATIONS)):
        case ("flip" | "cut" | "append") as how if files:
            _damage(draw, pick(draw, files), how)
        case "remove":
            clear_of(path)
        case "rename":
            path.rename(path.with_name(draw(st.sampled_from(["other", ".hidden", "manifest.json.old"]))))
        case "swap" if len(files) > 1:
            _swap(pick(draw, files), pick(draw, files))
        case "swap entries":
            _swap(*(cache.folder(fingerprint) for fingerprint in PROGRAMS.values()))
        case "copy entry":
            one, other = draw(st.permutations([cache.folder(fingerprint) for fingerprint in PROGRAMS.values()]))
            if one.is_dir() and not os.path.lexists(other):
                shutil.copytree(one, other, symlinks=True, copy_function=_copied)
        case ("fifo" | "socket" | "directory" | "link") as kind:
            clear_of(path)
            _put(draw, path, kind, outside)
        case "rights":
            if not path.is_symlink():
                path.chmod(draw(st.sampled_from([0o777, 0o770, 0o707, 0o666, 0o622, 0o000, 0o1777])))
        case "owner":
            if os.geteuid() == 0:
                os.chown(path, 12345, 12345, follow_symlinks=False)
        case "add":
            if path.is_dir() and not path.is_symlink():
                _put(
                    draw,
                    path / "more.so",
                    draw(st.sampled_from(["file", "fifo", "socket", "directory", "link"])),
                    outside,
                )
        case ("edit" | "rewrite") as how if manifests := [each for each in files if each.name == "manifest.json"]:
            _forge(draw, pick(draw, manifests), how)


def _copied(source, target):
    if os.path.isfile(source):
        shutil.copy2(source, target, follow_symlinks=False)


def _damage(draw, path, how):
    content = path.read_bytes()
    at = draw(st.integers(0, 9999)) % max(1, len(content))
    if how == "flip" and content:
        content = content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
    path.write_bytes({"flip": content, "cut": content[:at], "append": content + b"\0"}[how])


def _swap(one, other):
    if one != other and os.path.lexists(one) and os.path.lexists(other):
        between = one.with_name("between")
        one.rename(between)
        other.rename(one)
        between.rename(other)


def _put(draw, path, kind, outside):
    if os.path.lexists(path):
        return
    match kind:
        case "file":
            path.write_bytes(b"\x7fELF")
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                here = os.open(path.parent, os.O_RDONLY)
                # The name of a socket is short.
                server.bind(f"/proc/self/fd/{here}/{path.name}")
                os.close(here)
        case "directory":
            path.mkdir()
        case "link":
            path.symlink_to(draw(st.sampled_from([outside, outside / "canary", "nowhere", ".", "/dev/zero"])))


def _forge(draw, path, how):
    if how == "rewrite":
        path.write_text(draw(st.sampled_from(["", "{}", "[]", "null", DEEP, OLD, '{"seal": 1}', '{"files": {}}'])))
        return
    try:
        manifest = json.loads(path.read_text())
        key = pick(draw, sorted(manifest))
    except (ValueError, TypeError, RecursionError, ZeroDivisionError):
        return
    changes = [None, 1, "x", {}, [], {"relu": 1}, {"../../escape": [1, "x"]}, {"/etc/passwd": [1, "x"]}]
    manifest[key] = draw(st.sampled_from(changes))
    path.write_text(json.dumps(manifest))


def attempt(tmp_path_factory, data):
    place = tmp_path_factory.mktemp("mutated")
    outside = place / "outside"
    outside.mkdir()
    (outside / "canary").write_text("alive")
    cache = NativeCache(place / "cache")
    for name in PROGRAMS:
        build(cache, name)
    for _ in range(data.draw(st.integers(1, 3))):
        # A change that the file system refuses is not a mutation, such as a file in place of a directory.
        with contextlib.suppress(OSError):
            mutate(data.draw, cache, outside)
    lock = cache.root / f"{PROGRAMS['relu'].digest}.lock"
    if (kind := data.draw(st.sampled_from(["none", "fifo", "link", "file", "socket"]))) != "none":
        _put(data.draw, lock, kind, outside)
    for name, fingerprint in PROGRAMS.items():
        cache.why_missing(fingerprint)
        if not is_right(cache, name):
            # A refused entry is removed, so the program can be compiled again.
            with cache.compiling(fingerprint):
                assert not cache.is_ready(fingerprint)
                build(cache, name)
            assert is_right(cache, name)
    cache.tidy(PROGRAMS["relu"])
    assert all(is_right(cache, name) for name in PROGRAMS)
    assert [path.name for path in outside.iterdir()] == ["canary"]
    assert (outside / "canary").read_text() == "alive"
    shutil.rmtree(place, ignore_errors=True)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_mutation_makes_modified_code_run(tmp_path_factory, data):
    attempt(tmp_path_factory, data)


@pytest.mark.long
@settings(max_examples=2000, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_none_of_two_thousand_mutations_makes_modified_code_run(tmp_path_factory, data):
    attempt(tmp_path_factory, data)
