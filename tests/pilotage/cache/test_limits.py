"""Limits: the least recently used entries are removed first, and none that is in use."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pilotage.cache.inventory import Item, State
from pilotage.cache.limits import Limits, tidy
from pilotage.cache.sealed import seal
from pilotage.cache.store import Store, name_of

NOW = 1_000_000_000.0
DAY = 86400.0
NO_LIMITS = Limits(size=None, age=None)


def add(store, number, *, age, size=1000):
    parts = {"operations": str(number)}
    with store.building(name_of(parts)) as folder:
        (folder / "library.so").write_bytes(bytes(size))
        seal(folder, {"parts": parts})
    moment = time.time() - age
    os.utime(store.folder(name_of(parts)) / "manifest.json", (moment, moment))
    return name_of(parts)


def names(store):
    return {path.name for path in store.entries()}


def test_the_least_recently_used_entries_go_first(tmp_path):
    store = Store(tmp_path)
    oldest, used, newest = (add(store, number, age=age * DAY, size=10_000) for number, age in enumerate((3, 9, 1)))
    # Looking up an entry counts as use.
    assert store.find(used, {"operations": "1"}) is not None
    tidy(store, Limits(size=25_000, age=None))
    assert names(store) == {used, newest}
    assert oldest not in names(store)


def test_entries_unused_for_too_long_are_removed(tmp_path):
    store = Store(tmp_path)
    old, young = add(store, 0, age=91 * DAY), add(store, 1, age=89 * DAY)
    store.threads_file(young).write_text("{}")
    (tmp_path / f"{'0' * 32}.threads").write_text("{}")
    os.utime(tmp_path / f"{'0' * 32}.threads", (0, 0))
    os.utime(store.threads_file(young), (0, 0))
    tidy(store, Limits(size=None, age=90 * DAY))
    assert old not in names(store)
    assert {path.name for path in tmp_path.iterdir()} == {young, f"{young}.threads"}


def test_the_newest_entry_stays_even_if_it_is_larger_than_the_limit(tmp_path):
    store = Store(tmp_path)
    add(store, 0, age=0)
    large = add(store, 1, age=5, size=50_000)
    tidy(store, Limits(size=20_000, age=None), keep=large)
    assert names(store) == {large}


def test_an_entry_in_use_stays(tmp_path):
    store = Store(tmp_path)
    used, unused = add(store, 0, age=5), add(store, 1, age=5)
    found = store.find(used, {"operations": "0"})
    tidy(store, Limits(size=1, age=0.0))
    assert names(store) == {used}
    assert found.read("library.so") == bytes(1000)
    assert unused not in names(store)


def test_folders_of_other_tools_stay(tmp_path):
    store = Store(tmp_path)
    for number, manifest in enumerate((None, "{}", '{"name": "another tool"}')):
        folder = tmp_path / (str(number) * 32)
        folder.mkdir()
        if manifest is not None:
            (folder / "manifest.json").write_text(manifest)
    before = names(store)
    tidy(store, Limits(size=0, age=0.0))
    assert names(store) == before


@given(
    items=st.lists(st.tuples(st.integers(0, 100), st.floats(0, 200), st.sampled_from(list(State))), max_size=12),
    size=st.none() | st.integers(0, 500),
    age=st.none() | st.floats(0, 200),
)
def test_only_as_much_is_removed_as_the_limits_require(items, size, age):
    things = [
        Item(path=Path(f"/cache/{number}"), state=state, size=length, used=NOW - old * DAY)
        for number, (length, old, state) in enumerate(items)
    ]
    limits = Limits(size=size, age=None if age is None else age * DAY)
    gone = limits.surplus(things, now=NOW, keep="0")
    assert all(item.name != "0" and item.state in (State.READY, State.OUTDATED) for item in gone)
    kept = [i for i in things if i not in gone and i.state in (State.READY, State.OUTDATED) and i.name != "0"]
    fixed = sum(
        i.size
        for i in things
        if i.state is State.IN_USE or (i.name == "0" and i.state in (State.READY, State.OUTDATED))
    )
    if age is not None:
        assert all(NOW - item.used <= age * DAY for item in kept)
    if size is not None and any(item.size for item in kept):
        assert sum(item.size for item in kept) + fixed <= size
    assert NO_LIMITS.surplus(things, now=NOW) == []
