"""A sealed folder is used only as it was written, by this user, and while it is held."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.cache.private_files import ForeignFileError
from pilotage.cache.sealed import MANIFEST, UnsealedError, make_private, note_use, read_manifest, read_sealed, seal
from pilotage.errors import ProgramFileError

FILES = {"library.so": b"code", "kernels/first.cubin": b"\0\1\2", "empty": b""}


def written(folder, files=FILES):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    seal(folder, {"parts": {"torch": "2.13"}})
    return folder


@settings(max_examples=25)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.binary(max_size=200), max_size=5))
def test_any_files_are_read_as_they_were_written(tmp_path_factory, files):
    sealed = read_sealed(written(tmp_path_factory.mktemp("sealed"), files))
    assert set(sealed.files()) == set(files)
    assert {name: sealed.read(name) for name in files} == files


def test_the_manifest_lists_size_and_digest_of_every_file(tmp_path):
    manifest = read_manifest(written(tmp_path))
    assert manifest["parts"] == {"torch": "2.13"}
    assert manifest["files"] == {
        name: [len(content), hashlib.sha256(content).hexdigest()] for name, content in FILES.items()
    }


def test_other_users_have_no_rights(tmp_path):
    (tmp_path / "library.so").write_bytes(b"code")
    (tmp_path / "library.so").chmod(0o666)
    written(tmp_path)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path, *tmp_path.rglob("*")) if path.is_file()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "kernels").stat().st_mode) == 0o700


def test_a_link_is_never_sealed(tmp_path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(ForeignFileError):
        make_private(tmp_path)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda folder: (folder / "library.so").write_bytes(b"CODE"), "library.so"),
        (lambda folder: (folder / "library.so").write_bytes(b"code and more"), "library.so"),
        (lambda folder: (folder / "empty").unlink(), "empty"),
        (lambda folder: (folder / "more").write_bytes(b""), "more"),
        (lambda folder: (folder / "folder").mkdir(), "folder"),
        (lambda folder: (folder / "kernels/second.cubin").write_bytes(b"x"), "kernels/second.cubin"),
    ],
)
def test_every_kind_of_damage_is_noticed_and_named(tmp_path, damage, named):
    damage(written(tmp_path))
    make_private(tmp_path)
    with pytest.raises(ProgramFileError, match=rf"damaged: {named} is not what was written"):
        read_sealed(tmp_path)


def test_a_message_names_a_few_of_many_damaged_files(tmp_path):
    written(tmp_path, {f"file{number}": b"x" for number in range(9)})
    for number in range(9):
        (tmp_path / f"file{number}").write_bytes(b"y")
    with pytest.raises(ProgramFileError, match=r"file0, file1, file2, file3, file4 and more is not"):
        read_sealed(tmp_path)


@settings(max_examples=40)
@given(st.integers(0, 1 << 20), st.integers(1, 255))
def test_no_byte_of_the_manifest_can_change(tmp_path_factory, place, difference):
    folder = written(tmp_path_factory.mktemp("sealed"))
    before = (folder / MANIFEST).read_bytes()
    text = bytearray(before)
    text[place % len(text)] ^= difference
    (folder / MANIFEST).write_bytes(text)
    if says_the_same(before, bytes(text)):
        assert read_sealed(folder) is not None
        return
    with pytest.raises(ProgramFileError):
        read_sealed(folder)


def says_the_same(before, after):
    """Whether only white space outside of texts has changed."""
    try:
        return json.loads(after) == json.loads(before)
    except ValueError:
        return False


def test_a_manifest_of_an_older_version_is_distinguished_from_a_damaged_one(tmp_path):
    written(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps({"parts": {}, "tuning": {}, "digests": {}}))
    with pytest.raises(UnsealedError, match="an older version wrote it"):
        read_sealed(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {}}', "[" * 100_000])
def test_a_file_that_is_not_a_manifest_is_refused(tmp_path, text):
    written(tmp_path)
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(ProgramFileError):
        read_sealed(tmp_path)


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path):
    written(tmp_path)
    (tmp_path / MANIFEST).chmod(0o622)
    with pytest.raises(ForeignFileError, match="is not used"):
        read_sealed(tmp_path)


def test_a_missing_folder_cannot_be_read(tmp_path):
    with pytest.raises(ProgramFileError, match="cannot be read"):
        read_sealed(tmp_path / "missing")


def is_locked(folder):
    with (folder / MANIFEST).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_folder_is_locked_as_long_as_it_is_in_use(tmp_path):
    sealed = read_sealed(written(tmp_path))
    assert is_locked(tmp_path)
    del sealed
    assert not is_locked(tmp_path)


def test_a_failed_check_leaves_no_lock(tmp_path):
    written(tmp_path)
    (tmp_path / "library.so").write_bytes(b"CODE")
    with pytest.raises(ProgramFileError):
        read_sealed(tmp_path)
    assert not is_locked(tmp_path)


def test_a_folder_that_is_being_removed_is_not_found(tmp_path):
    written(tmp_path)
    with (tmp_path / MANIFEST).open() as remover:
        fcntl.flock(remover, fcntl.LOCK_EX)
        assert read_sealed(tmp_path) is None


def test_use_is_noted_by_the_time_of_the_manifest(tmp_path):
    manifest = written(tmp_path) / MANIFEST
    os.utime(manifest, (1000, 1000))
    note_use(tmp_path)
    assert manifest.stat().st_mtime > 1e9
    note_use(tmp_path / "missing")
