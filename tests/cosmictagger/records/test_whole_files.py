"""Files that appear only when they are whole."""

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
