import stat
import subprocess
import sys

import pytest

from pilotage.monitoring.run_file import RunFile

FORK = """
import os, sys
from pathlib import Path
from pilotage.monitoring.run_file import RunFile
directory = Path(sys.argv[1])
file = RunFile([directory])
file.write("parent")
child = os.fork()
if not child:
    assert not file.is_of_this_process
    file.remove()
    os._exit(0)
os.waitpid(child, 0)
print([path.read_text() for path in directory.iterdir()])
file.remove()
print(list(directory.iterdir()))
"""


def test_a_run_file_is_private_and_the_only_file(tmp_path):
    file = RunFile([tmp_path / "run"])
    for text in ("first", "second"):
        file.write(text)
        (path,) = (tmp_path / "run").iterdir()
        assert path.read_text() == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.remove()
    assert not list((tmp_path / "run").iterdir())


def test_the_first_directory_that_can_be_used_is_used(tmp_path):
    (tmp_path / "file").write_text("")
    RunFile([tmp_path / "file", tmp_path / "missing/run", tmp_path / "run"]).write("here")
    (path,) = (tmp_path / "run").iterdir()
    assert path.read_text() == "here"


def test_a_removed_directory_is_created_again(tmp_path):
    file = RunFile([tmp_path / "run"])
    file.write("before")
    (path,) = (tmp_path / "run").iterdir()
    path.unlink()
    path.parent.rmdir()
    file.write("after")
    assert path.read_text() == "after"


def test_if_no_directory_works_all_reasons_are_given(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"file is not a directory; .*missing"):
        RunFile([tmp_path / "file", tmp_path / "missing/run"]).write("nowhere")


def test_a_forked_process_does_not_touch_its_parents_file(tmp_path):
    ran = subprocess.run([sys.executable, "-c", FORK, tmp_path / "run"], capture_output=True, text=True)
    assert ran.stdout.splitlines() == ["['parent']", "[]"], ran.stderr
