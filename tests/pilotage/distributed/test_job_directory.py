from __future__ import annotations

import os
import stat
import tempfile

import pytest

from pilotage.distributed.job_directory import JobDirectory
from pilotage.errors import DistributedError


@pytest.fixture(autouse=True)
def temporary(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_only_this_user_can_enter_it_and_read_the_key():
    before = os.umask(0)
    try:
        made = JobDirectory.make()
    finally:
        os.umask(before)
    assert mode(made.path) == 0o700
    assert mode(made.path / "key") == 0o600
    found = JobDirectory.at(str(made.path))
    assert found == made
    assert len(found.key) == 32
    assert found.key != JobDirectory.make().key
    made.remove()
    assert not made.path.exists()


def test_a_directory_that_others_can_enter_is_refused(temporary):
    with JobDirectory.make() as made:
        for wrong in (0o750, 0o705, 0o777):
            made.path.chmod(wrong)
            with pytest.raises(DistributedError, match="not a private directory of a job"):
                JobDirectory.at(str(made.path))
        made.path.chmod(0o700)
        link = temporary / "pilotage-job-link"
        link.symlink_to(made.path)
        named = temporary / "elsewhere"
        named.mkdir(mode=0o700)
        for path in (link, named, "pilotage-job-x/../..", temporary / "pilotage-job-file"):
            (temporary / "pilotage-job-file").touch(mode=0o600)
            with pytest.raises(DistributedError, match=r"directory of (a|the) job"):
                JobDirectory.at(str(path))
    with pytest.raises(DistributedError, match=r"cannot be found.*TMPDIR"):
        JobDirectory.at(str(made.path))


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory to another user needs root")
def test_the_directory_of_another_user_is_refused():
    with JobDirectory.make() as made:
        os.chown(made.path, 65534, 65534)
        with pytest.raises(DistributedError, match="belong to this user"):
            JobDirectory.at(str(made.path))


def test_a_truncated_key_is_refused():
    with JobDirectory.make() as made:
        (made.path / "key").write_bytes(b"short")
        with pytest.raises(DistributedError, match="has 5 bytes instead of 32"):
            _ = made.key
        (made.path / "key").unlink()
        with pytest.raises(DistributedError, match="cannot be read"):
            _ = made.key


def test_only_the_directories_of_killed_jobs_are_removed(temporary):
    living, left = JobDirectory.make(), temporary / "pilotage-job-left"
    left.mkdir(mode=0o700)
    (left / "store").touch()
    new = temporary / "pilotage-job-new"
    new.mkdir(mode=0o700)
    for path in (living.path, left):
        os.utime(path, (0, 0))
    JobDirectory.make().remove()
    assert living.path.exists()
    assert new.exists()
    assert not left.exists()
    living.remove()
