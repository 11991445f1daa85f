"""Entries are built and removed as a whole, and never removed while in use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from pilotage.cache.sealed import seal
from pilotage.cache.store import Store, name_of, size_of
from pilotage.errors import ProgramFileError

PARTS = {"operations": "relu", "torch": "2.13"}
NAME = name_of(PARTS)


def built(root, parts=PARTS, content=b"code"):
    store = Store(root)
    with store.building(name_of(parts)) as folder:
        (folder / "library.so").write_bytes(content)
        seal(folder, {"parts": parts})
    return store


def test_a_built_entry_is_found_and_read(tmp_path):
    store = built(tmp_path)
    found = store.find(NAME, PARTS)
    assert found.folder == store.folder(NAME)
    assert found.read("library.so") == b"code"
    assert store.find(name_of({"operations": "tanh"}), {"operations": "tanh"}) is None


def test_a_file_that_changes_after_the_check_is_noticed_when_it_is_read(tmp_path):
    found = built(tmp_path).find(NAME, PARTS)
    (found.folder / "library.so").write_bytes(b"CODE")
    with pytest.raises(ProgramFileError, match=r"damaged: library.so is not what was written"):
        found.read("library.so")


def test_only_entries_that_are_not_in_use_are_removed(tmp_path):
    store = built(tmp_path)
    store.threads_file(NAME).write_text("{}")
    found = store.find(NAME, PARTS)
    assert not store.remove(NAME)
    assert found.read("library.so") == b"code"
    del found
    assert store.remove(NAME)
    assert list(store.root.iterdir()) == []


def test_finding_an_entry_records_its_use(tmp_path):
    store = built(tmp_path)
    manifest = store.folder(NAME) / "manifest.json"
    os.utime(manifest, (1000, 1000))
    store.find(NAME, PARTS)
    assert manifest.stat().st_mtime > 1e9


def test_the_second_builder_keeps_the_entry_of_the_first(tmp_path):
    store = Store(tmp_path)
    with store.building(NAME) as folder:
        (folder / "library.so").write_bytes(b"second")
        seal(folder, {"parts": PARTS})
        built(tmp_path, content=b"first")
    assert store.find(NAME, PARTS).read("library.so") == b"first"
    assert len(list(store.root.iterdir())) == 1


@pytest.mark.parametrize("obstacle", ["file", "link", "fifo"])
def test_a_build_replaces_anything_with_its_name(tmp_path, obstacle):
    store = Store(tmp_path / "cache")
    match obstacle:
        case "file":
            store.folder(NAME).write_text("")
        case "link":
            (tmp_path / "elsewhere").mkdir()
            store.folder(NAME).symlink_to(tmp_path / "elsewhere")
        case "fifo":
            os.mkfifo(store.folder(NAME))
    built(tmp_path / "cache")
    assert store.find(NAME, PARTS) is not None
    assert obstacle != "link" or (tmp_path / "elsewhere").is_dir()


def test_a_path_replaced_since_its_examination_is_kept(tmp_path):
    store = built(tmp_path)
    examined = store.folder(NAME).lstat()
    assert store.remove(NAME)
    (tmp_path / "takes the inode").mkdir()
    built(tmp_path)
    store.discard(store.folder(NAME), examined)
    assert store.find(NAME, PARTS) is not None


BUILDER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from pilotage.cache.store import Store
store = Store(Path({root!r}))
with store.build_lock({name!r}), store.building({name!r}) as folder:
    (folder / "half").write_text("half")
    print("building", flush=True)
    sys.stdin.read()
"""


def test_only_the_builds_of_dead_processes_are_removed(tmp_path):
    program = BUILDER.format(path=sys.path, root=str(tmp_path), name=NAME)
    store = Store(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as builder:
        assert builder.stdout.readline() == "building\n"
        store.sweep()
        assert len(store.leftovers()) == 2, "its lock file and its folder"
        builder.send_signal(signal.SIGKILL)
    assert len(store.leftovers()) == 2
    store.sweep()
    assert list(store.root.iterdir()) == []


def test_only_folders_with_our_names_are_leftovers(tmp_path):
    store = Store(tmp_path, leftovers="tmp[a-z]{2}")
    for name in ("data", ".git", "tmpab", f".{NAME}.abc", f"{NAME}.lock", f"{NAME}.123", f"{NAME}.txt", "tmpabc"):
        (tmp_path / name).mkdir()
    assert {path.name for path in store.leftovers()} == {"tmpab", f".{NAME}.abc", f"{NAME}.lock", f"{NAME}.123"}
    store.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"data", ".git", f"{NAME}.txt", "tmpabc"}


def test_a_leftover_link_is_removed_and_its_target_stays(tmp_path):
    store = Store(tmp_path / "cache")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "kept").write_text("")
    (store.root / f".{NAME}.link").symlink_to(tmp_path / "target")
    store.sweep()
    assert list(store.root.iterdir()) == []
    assert (tmp_path / "target" / "kept").exists()


def test_the_size_counts_files_and_follows_no_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"12345")
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to("/")
    os.mkfifo(tmp_path / "fifo")
    assert size_of(tmp_path) == 8
    assert size_of(tmp_path / "nothing") == 0


def test_an_entry_that_others_remove_and_rebuild_is_found_complete_or_not_at_all(tmp_path):
    store, done = Store(tmp_path), threading.Event()

    def come_and_go():
        while not done.is_set():
            built(tmp_path, content=bytes(100_000))
            Store(tmp_path).remove(NAME)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        found = [store.find(NAME, PARTS) for _ in range(200)]
    finally:
        done.set()
        thread.join()
    assert all(each is None or each.manifest["parts"] == PARTS for each in found)
