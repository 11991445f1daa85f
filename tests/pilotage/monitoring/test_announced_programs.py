import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.monitoring.announced_programs import read_announcements
from pilotage.monitoring.processes import ProcessIdentity, current_namespace, process_state

TOKEN = "0123abcd"


def put(directory: Path, process: ProcessIdentity, content: str | bytes, suffix: str = ".json", token=TOKEN) -> Path:
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / f"{process.name_for(token)}{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def this() -> ProcessIdentity:
    return ProcessIdentity.of_this_process()


def test_without_a_directory_nothing_is_found_and_nothing_is_created(tmp_path):
    announced = read_announcements([tmp_path / "run", tmp_path / "missing/run"])
    assert (announced.programs, announced.notes) == ({}, ())
    assert not list(tmp_path.iterdir())


def test_all_programs_of_a_living_process_are_found_in_all_directories(tmp_path, this, announcement):
    put(tmp_path / "one", this, announcement(tier="graph").as_text())
    put(tmp_path / "two", this, announcement(tier="compiled").as_text(), token="89abcdef")
    announced = read_announcements([tmp_path / "one", tmp_path / "two"])
    assert [said.tier for said in announced.programs[os.getpid()]] == ["graph", "compiled"]
    assert not announced.notes


def test_files_of_a_killed_process_are_removed(tmp_path, announcement):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = ProcessIdentity(pid=child.pid, started=process_state(child.pid).started, namespace=current_namespace())
    text = announcement().as_text()
    files = [put(tmp_path / "run", process, text), put(tmp_path / "run", process, text[:20], ".part")]
    assert child.pid in read_announcements([tmp_path / "run"]).programs
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not read_announcements([tmp_path / "run"]).programs
    assert not [file for file in files if file.exists()]
    child.stdin.close()
    child.wait()


def test_a_reused_pid_is_not_mistaken_for_the_old_process(tmp_path, this, announcement):
    before = put(tmp_path / "run", replace(this, started=this.started - 1), announcement().as_text())
    assert not read_announcements([tmp_path / "run"]).programs
    assert not before.exists()


def test_announcements_of_another_machine_are_counted_and_kept_for_a_day(tmp_path, this, announcement):
    file = put(tmp_path / "run", replace(this, namespace="0" * 12, started=1), announcement().as_text())
    announced = read_announcements([tmp_path / "run"])
    assert not announced.programs
    assert announced.notes == ("1 program of another container or machine not shown.",)
    assert file.exists()
    yesterday = time.time() - 25 * 60 * 60
    os.utime(file, (yesterday, yesterday))
    read_announcements([tmp_path / "run"])
    assert not file.exists()


def test_a_truncated_file_does_not_hide_others(tmp_path, this, announcement):
    text = announcement().as_text()
    put(tmp_path / "run", this, text)
    cut = put(tmp_path / "run", this, text[:-5], token="89abcdef")
    announced = read_announcements([tmp_path / "run"])
    assert len(announced.programs[os.getpid()]) == 1
    assert announced.notes == ("1 announcement could not be read.",)
    assert cut.exists()


def test_an_unreadable_process_is_not_listed(tmp_path, this):
    put(tmp_path / "run", this, b"\xff" * 10)
    assert not read_announcements([tmp_path / "run"]).programs


@given(st.binary(max_size=200), st.text("0123456789abcdef-.jsonpart/", max_size=40))
def test_invalid_files_are_ignored(content, name):
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        directory.mkdir(mode=0o700)
        put(directory, ProcessIdentity.of_this_process(), content)
        if "/" not in name and name.strip("."):
            (directory / name).write_bytes(content)
        announced = read_announcements([directory])
        assert not announced.programs
        assert "1 announcement could not be read." in announced.notes


def test_pipes_and_links_are_neither_read_nor_followed(tmp_path, this, announcement):
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    secret = tmp_path / "secret"
    secret.write_text(announcement().as_text())
    os.mkfifo(directory / f"{this.name_for('00000001')}.json")
    (directory / f"{this.name_for('00000002')}.json").mkdir()
    (directory / f"{this.name_for('00000003')}.json").symlink_to(secret)
    put(directory, this, b" " * 100_000, token="00000004")
    announced = read_announcements([directory])
    assert not announced.programs
    assert announced.notes == ("4 announcements could not be read.",)


def test_other_files_are_not_touched(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    names = ["notes.txt", "1-2-3.json", ".hidden", "12345678901234567890.json"]
    for name in names:
        (tmp_path / "run" / name).write_text("mine")
    assert read_announcements([tmp_path / "run"]).notes == ()
    assert sorted(os.listdir(tmp_path / "run")) == sorted(names)


def test_a_directory_that_others_can_reach_is_not_trusted(tmp_path, this, announcement):
    put(tmp_path / "run", this, announcement().as_text())
    (tmp_path / "run").chmod(0o755)
    announced = read_announcements([tmp_path / "run"])
    assert not announced.programs
    assert announced.notes == (
        f"Cannot read announcements: {tmp_path}/run is open to others: chmod 700 {tmp_path}/run.",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_announcements_of_another_user_are_not_shown(tmp_path, this, announcement):
    put(tmp_path / "run", this, announcement().as_text())
    os.chown(tmp_path / "run", 12345, 12345)
    announced = read_announcements([tmp_path / "run"])
    assert not announced.programs
    assert "belongs to another user" in announced.notes[0]


def test_a_switched_off_directory_is_reported():
    assert read_announcements(()).notes == ("PILOTAGE_RUN_DIR is off, so processes are not listed.",)
