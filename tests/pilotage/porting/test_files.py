from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilotage.errors import PortingError
from pilotage.porting.files import Writing
from pilotage.porting.report import PortedFile, Report
from pilotage.porting.target import Target


def report(*files: tuple[Path, str]) -> Report:
    made = [PortedFile(path=path, before=path.read_text(), after=after) for path, after in files]
    return Report(target=Target.POPTORCH, files=made, findings=[])


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "package" / "script.py"
    path.parent.mkdir()
    path.write_text("before\n")
    path.chmod(0o750)
    return path


def write(writing: Writing) -> list[Path]:
    writing.check()
    return writing.write()


def test_a_file_is_replaced_in_place_with_its_mode(script):
    assert write(Writing(report((script, "after\n")), in_place=True)) == [script]
    assert script.read_text() == "after\n"
    assert script.stat().st_mode & 0o777 == 0o750
    assert list(script.parent.iterdir()) == [script]


def test_if_one_file_cannot_be_written_none_is_replaced(script, monkeypatch):
    second = script.with_name("second.py")
    second.write_text("before\n")
    written = []

    def full(path, content):
        written.append(path)
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("pilotage.porting.files.write_whole", full)
    with pytest.raises(PortingError, match=r"second\.py cannot be written: No space left on device"):
        write(Writing(report((script, "after\n"), (second, "after\n")), in_place=True))
    assert (script.read_text(), second.read_text()) == ("before\n", "before\n")
    assert sorted(each.name for each in script.parent.iterdir()) == ["script.py", "second.py"]


def test_a_link_stays_a_link(script, tmp_path):
    link = tmp_path / "link.py"
    link.symlink_to(script)
    write(Writing(report((link, "after\n")), in_place=True))
    assert link.is_symlink()
    assert script.read_text() == "after\n"


def test_nothing_is_overwritten_without_in_place(script, tmp_path):
    other = tmp_path / "other.py"
    other.write_text("mine\n")
    with pytest.raises(PortingError, match="exists already"):
        write(Writing(report((script, "after\n")), output=other))
    assert other.read_text() == "mine\n"
    assert write(Writing(report((script, "after\n")), output=tmp_path / "new.py")) == [tmp_path / "new.py"]


def test_several_files_keep_their_places_in_a_new_folder(script, tmp_path):
    inner = script.parent / "inner" / "model.py"
    inner.parent.mkdir()
    inner.write_text("same\n")
    write(Writing(report((script, "after\n"), (inner, "same\n")), output=tmp_path / "new"))
    assert (tmp_path / "new" / "script.py").read_text() == "after\n"
    assert (tmp_path / "new" / "inner" / "model.py").read_text() == "same\n"
    assert script.read_text() == "before\n"


def test_a_target_below_a_file_is_refused_before_anything_is_written(script, tmp_path):
    with pytest.raises(PortingError, match="is not a folder"):
        Writing(report((script, "after\n")), output=script / "below.py").check()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_without_permission_is_refused(script):
    script.chmod(0o400)
    with pytest.raises(PortingError, match="permission denied"):
        Writing(report((script, "after\n")), in_place=True).check()


def test_the_encoding_of_the_original_is_kept(script):
    before = "# -*- coding: latin-1 -*-\nname = 'é'\n"
    script.write_text(before, encoding="latin-1")
    file = PortedFile(path=script, before=before, after=before + "x = 1\n")
    write(Writing(Report(target=Target.POPTORCH, files=[file], findings=[]), in_place=True))
    assert script.read_bytes() == (before + "x = 1\n").encode("latin-1")
