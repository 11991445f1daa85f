"""The cache of compiled programs."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.compiler.cache import NativeCache, read_entry, write_manifest
from pilotage.compiler.tuning import Tuning
from pilotage.errors import ProgramFileError
from pilotage.options.choices import Tier
from pilotage.storage.fingerprint import Fingerprint

HERE = Fingerprint({"operations": "abc", "torch": "2.13", "device": "cpu"})
TUNING = Tuning(tier=Tier.COMPILED, channels_last=True, seconds={"graph": 2.0, "compiled": 1.0})


def filled(root, fingerprint=HERE):
    cache = NativeCache(root)
    with cache.building(fingerprint) as folder:
        (folder / "train").mkdir()
        (folder / "train" / "0.so").write_bytes(bytes(range(256)))
        (folder / "train" / "wrapper.py").write_text("call = None")
        write_manifest(folder, fingerprint, TUNING)
    return cache


def test_a_built_entry_is_found(tmp_path):
    cache = filled(tmp_path)
    entry = cache.find(HERE)
    assert entry.tuning == TUNING
    assert entry.folder == cache.folder(HERE)


def test_an_entry_that_was_not_built_is_not_found(tmp_path):
    assert filled(tmp_path).find(Fingerprint({"operations": "other"})) is None


def test_a_build_that_fails_leaves_nothing(tmp_path):
    cache = NativeCache(tmp_path)

    def build():
        with cache.building(HERE) as folder:
            (folder / "half").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        build()
    assert list(cache.root.iterdir()) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_damage_is_detected_and_the_damaged_entry_is_removed(tmp_path_factory, data):
    cache = filled(tmp_path_factory.mktemp("cache"))
    folder = cache.folder(HERE)
    path = data.draw(st.sampled_from(sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json")))
    content = path.read_bytes()
    damage = data.draw(st.sampled_from(["cut", "flip", "remove", "add"]))
    match damage:
        case "cut":
            path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
        case "flip":
            at = data.draw(st.integers(0, len(content) - 1))
            path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        case "remove":
            path.unlink()
        case "add":
            (folder / "more.so").write_bytes(b"")
    with pytest.raises(ProgramFileError, match="damaged"):
        cache.find(HERE)
    assert cache.find(HERE) is None


@pytest.mark.parametrize("manifest", ["", "{", "{}", '{"parts": {}, "tuning": {}, "digests": {}}'])
def test_an_invalid_manifest_is_damage(tmp_path, manifest):
    cache = filled(tmp_path)
    (cache.folder(HERE) / "manifest.json").write_text(manifest)
    with pytest.raises(ProgramFileError, match="manifest"):
        read_entry(cache.folder(HERE))


def test_a_miss_says_what_has_changed(tmp_path):
    cache = filled(tmp_path)
    filled(tmp_path, Fingerprint({"operations": "xyz", "torch": "2.11", "device": "cuda"}))
    why = cache.why_missing(Fingerprint({**HERE.parts, "torch": "2.14"}))
    assert "torch (2.13 before, now 2.14)" in why
    assert "operations" not in why


def test_an_empty_cache_says_so(tmp_path):
    assert NativeCache(tmp_path).why_missing(HERE) == "the cache is empty"


def test_one_process_compiles_at_a_time(tmp_path):
    cache, order, inside = NativeCache(tmp_path), [], threading.Event()

    def second():
        inside.wait()
        with NativeCache(tmp_path).compiling(HERE):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with cache.compiling(HERE):
        inside.set()
        # The other process must wait for us; a short pause would show if it did not.
        thread.join(timeout=0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_files_that_others_could_have_written_are_not_used(tmp_path):
    os.chmod(tmp_path, 0o777)
    with pytest.raises(Exception, match="written to by others"):
        NativeCache(tmp_path)
