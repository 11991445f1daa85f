"""The file of a watched process, whatever the script does with its own files."""

import os

from pilotage.proof.watching.record import RecordFile


def test_a_file_that_the_script_opens_at_a_closed_number_stays_its_own(tmp_path):
    record = RecordFile(str(tmp_path))
    record.add("process", pid=1)
    (number,) = [int(each) for each in os.listdir("/proc/self/fd") if _is(each, tmp_path / f"{os.getpid()}.jsonl")]
    os.close(number)
    own = os.open(tmp_path / "own", os.O_WRONLY | os.O_CREAT)
    if own != number:
        os.dup2(own, number)
        os.close(own)
    record.add("end", how="finished")
    os.close(number)
    assert (tmp_path / "own").read_text() == ""
    assert (tmp_path / f"{os.getpid()}.jsonl").read_text() == (
        '{"event":"process","pid":1}\n{"event":"end","how":"finished"}\n'
    )


def test_what_cannot_be_written_any_more_is_dropped(tmp_path):
    record = RecordFile(str(tmp_path / "gone"))
    record.add("process", pid=1)
    assert not list(tmp_path.iterdir())


def _is(number, path):
    try:
        return os.readlink(f"/proc/self/fd/{number}") == str(path)
    except OSError:
        return False
