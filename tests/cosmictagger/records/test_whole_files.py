"""Files that appear only when they are whole."""

import os
from pathlib import Path

import pytest

from cosmictagger.records.whole_files import write_whole


def test_what_fails_half_way_leaves_the_old_file(tmp_path):
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


def test_file_folder_and_the_folders_above_are_forced_to_the_disk(tmp_path, monkeypatch):
    done, fsync = [], os.fsync

    def noted(handle):
        fsync(handle)
        done.append(Path(os.readlink(f"/proc/self/fd/{handle}")))

    monkeypatch.setattr(os, "fsync", noted)
    folder = tmp_path / "run" / "checkpoints"
    write_whole(folder / "file", b"content")
    assert set(done) == {tmp_path, folder.parent, folder / "file.part", folder}
    assert done[-2:] == [folder / "file.part", folder]
