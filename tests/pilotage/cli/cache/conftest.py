"""A cache with one entry in each state."""

from __future__ import annotations

import os
import time

import pytest

from pilotage.cache.sealed import seal
from pilotage.cache.store import Store, name_of

DAY = 86400.0


@pytest.fixture
def root(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def add(root):
    """Adds an entry; returns its name."""

    def add_entry(program, *, age=0.0, size=1000, kind="training"):
        store = Store(root)
        parts = {"operations": program, "device": "cpu with AVX2", "torch": "2.13.0"}
        name = name_of(parts)
        with store.building(name) as folder:
            (folder / "train").mkdir()
            (folder / "train" / "0.so").write_bytes(bytes(size))
            seal(folder, {"parts": parts, "about": {"name": program, "kind": kind}})
        moment = time.time() - age * DAY
        os.utime(store.folder(name) / "manifest.json", (moment, moment))
        return name

    return add_entry


@pytest.fixture
def all_sorts(root, add):
    """The name of one entry in each state, except `in use`."""
    names = {state: add(state.title(), age=number) for number, state in enumerate(("ready", "damaged", "foreign"))}
    (root / names["damaged"] / "train" / "0.so").write_bytes(b"other")
    (root / names["foreign"]).chmod(0o777)
    names["outdated"] = "0" * 32
    (root / names["outdated"]).mkdir(mode=0o700)
    (root / names["outdated"] / "manifest.json").write_text('{"parts": {}, "tuning": {}, "digests": {}}')
    names["leftover"] = f".{'a' * 32}.building"
    (root / names["leftover"]).mkdir()
    return names
