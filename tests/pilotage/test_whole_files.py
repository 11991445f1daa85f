from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.whole_files import write_whole

OVERWRITE_FOR_EVER = """
import itertools, sys
from pathlib import Path
from pilotage.whole_files import write_whole
for turn in itertools.count():
    write_whole(Path(sys.argv[1]), bytes([turn % 256]) * 3_000_000)
    if turn == 3:
        print("started", flush=True)
"""


def test_the_file_appears_with_its_directories(tmp_path: Path) -> None:
    write_whole(tmp_path / "deep" / "down" / "file", b"content")
    assert (tmp_path / "deep" / "down" / "file").read_bytes() == b"content"
    assert os.listdir(tmp_path / "deep" / "down") == ["file"]


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", b"old")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "file", "not bytes")  # type: ignore[arg-type]
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(b"")
    write_whole(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_file_is_synced_before_it_is_renamed_and_its_folder_afterwards(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(handle: int) -> None:
        fsync(handle)
        done.append(Path(os.readlink(f"/proc/self/fd/{handle}")))

    def noted_replace(source: Path, target: Path) -> None:
        assert source.read_bytes() == b"content"
        replace(source, target)
        done.append(target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    folder = tmp_path / "new"
    write_whole(folder / "file", b"content")
    parent, unfinished, named, last = done
    assert (parent, unfinished.parent, named, last) == (tmp_path, folder, folder / "file", folder)
    assert unfinished.name.startswith(".file.")

    done.clear()
    write_whole(folder / "file", lambda stream: stream.write(b"content"), durable=False)
    assert done == [folder / "file"]


def test_a_function_that_fails_half_way_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def fail(file):
        file.write(b"new, half")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_whole(path, fail)
    assert path.read_bytes() == b"old"
    write_whole(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_new_folders_are_synced_too(tmp_path, monkeypatch):
    done, fsync = [], os.fsync

    def noted(handle):
        fsync(handle)
        done.append(Path(os.readlink(f"/proc/self/fd/{handle}")))

    monkeypatch.setattr(os, "fsync", noted)
    folder = tmp_path / "run" / "checkpoints"
    write_whole(folder / "file", b"content")
    *_, unfinished, last = done
    assert set(done) == {tmp_path, folder.parent, unfinished, folder}
    assert (unfinished.parent, last) == (folder, folder)
    assert unfinished.name.startswith(".file.")


@pytest.mark.slow
def test_two_killed_writers_leave_a_whole_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    writers = [
        subprocess.Popen([sys.executable, "-c", OVERWRITE_FOR_EVER, str(target)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"started\n"
        seen = target.read_bytes()
        assert len(seen) == 3_000_000
        assert len(set(seen)) == 1
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    left = target.read_bytes()
    assert len(left) == 3_000_000
    assert len(set(left)) == 1
