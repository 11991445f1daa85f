"""Locks end with their process, and obstacles do not block."""

from __future__ import annotations

import os
import threading

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
