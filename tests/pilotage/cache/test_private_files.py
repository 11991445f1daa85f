"""Private files and directories."""

from __future__ import annotations

import os

import pytest

from pilotage.cache.private_files import private_directory
from pilotage.errors import OptionError


def test_a_new_directory_is_private(tmp_path):
    path = private_directory(tmp_path / "a" / "b")
    assert path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("rights", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path, rights):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(rights)
    with pytest.raises(OptionError, match=r"can be written to by others.*chmod go-w"):
        private_directory(shared)


def test_a_directory_inside_a_writable_one_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(OptionError, match="can be written to by others"):
        private_directory(shared / "mine")


def test_a_sticky_parent_directory_is_accepted(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert private_directory(shared / "mine").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    with pytest.raises(OptionError, match="belongs to another user"):
        private_directory(other)


def test_a_path_that_is_not_a_directory_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="cannot be kept in"):
        private_directory(tmp_path / "file" / "below")
