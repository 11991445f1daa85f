"""Locks end with their process, and obstacles do not block."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from pilotage.cache.locks import BuildFolder, abandoned, only_one, remove_abandoned


def test_a_lock_file_is_removed_after_its_last_holder(tmp_path):
    with only_one(tmp_path / "lock"):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []


def test_many_threads_take_turns_although_the_file_is_removed_in_between(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(20):
            with only_one(tmp_path / "lock"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


@pytest.mark.timeout(20)
@pytest.mark.parametrize("obstacle", ["fifo", "link", "dangling link", "directory"])
def test_an_obstacle_with_the_name_of_a_lock_file_is_removed(tmp_path, obstacle):
    lock, target = tmp_path / "lock", tmp_path / "target"
    match obstacle:
        case "fifo":
            os.mkfifo(lock)
        case "link":
            target.write_text("kept")
            lock.symlink_to(target)
        case "dangling link":
            lock.symlink_to(target)
        case "directory":
            lock.mkdir()
    with only_one(lock):
        assert lock.is_file()
        assert not lock.is_symlink()
    assert target.exists() == (obstacle == "link")


def test_a_build_folder_without_a_lock_counts_as_abandoned(tmp_path):
    with BuildFolder.new(tmp_path, ".build.") as build:
        assert build.path.stat().st_mode & 0o777 == 0o700
        with abandoned(build.path) as is_free:
            assert not is_free
        assert not remove_abandoned(build.path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".build.dead").mkdir()
    assert remove_abandoned(tmp_path / ".build.dead")
    assert list(tmp_path.iterdir()) == []


def test_a_build_folder_that_a_cleanup_removes_at_once_is_made_again(tmp_path, monkeypatch):
    make, made = tempfile.mkdtemp, []

    def mkdtemp(**given):
        made.append(Path(make(**given)))
        if len(made) == 1:
            assert remove_abandoned(made[0])
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    with BuildFolder.new(tmp_path, ".build.") as build:
        assert build.path == made[1]
        assert not remove_abandoned(build.path)


def test_build_folders_are_made_while_other_threads_clean_up(tmp_path):
    is_over = threading.Event()

    def clean_up():
        while not is_over.is_set():
            for left in list(tmp_path.iterdir()):
                remove_abandoned(left)

    thread = threading.Thread(target=clean_up)
    thread.start()
    try:
        for _ in range(300):
            with BuildFolder.new(tmp_path, ".build.") as build:
                assert build.path.is_dir()
    finally:
        is_over.set()
        thread.join()
