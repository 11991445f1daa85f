import os
import stat

import pytest

from pilotage.monitoring.run_directory import prepare_run_directory, run_directory_problem

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_a_created_directory_is_private(tmp_path):
    prepare_run_directory(tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    assert run_directory_problem(tmp_path / "run") is None
    prepare_run_directory(tmp_path / "run")


def test_a_directory_open_to_others_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o750)
    with pytest.raises(PermissionError, match=r"open to others: chmod 700 "):
        prepare_run_directory(tmp_path / "run")


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="is not a directory"):
        prepare_run_directory(tmp_path / "run")


def test_a_directory_that_others_could_replace_is_refused(tmp_path):
    around = tmp_path / "shared"
    around.mkdir()
    around.chmod(0o777)
    with pytest.raises(PermissionError, match="is writable by others"):
        prepare_run_directory(around / "run")
    assert not (around / "run").exists()
    around.chmod(0o1777)
    prepare_run_directory(around / "run")


@needs_root
def test_a_directory_of_another_user_is_refused_even_for_root(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    os.chown(tmp_path / "run", 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        prepare_run_directory(tmp_path / "run")


@needs_root
def test_nothing_is_created_in_another_users_directory(tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        prepare_run_directory(tmp_path / "theirs/run")
    assert not (tmp_path / "theirs/run").exists()


def test_a_missing_parent_directory_is_not_created(tmp_path):
    with pytest.raises(FileNotFoundError):
        prepare_run_directory(tmp_path / "missing/run")
