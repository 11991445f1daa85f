"""The compiling process as a process: how it fails, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

WITHOUT_END = """
import sys, time
from pilotage.compiler.worker import main
main.CompileJob.read = lambda path: time.sleep(600)
main.main(sys.argv[1])
"""
"""The compiling process with a job that it never finishes reading."""


def worker(job, *program):
    return subprocess.Popen(
        [sys.executable, *(program or ("-m", "pilotage.compiler.worker.main")), str(job)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_the_last_line_of_a_failed_job_describes_the_error(tmp_path):
    job = tmp_path / "job"
    job.write_bytes(b"damaged")
    process = worker(job)
    # Standard input stays open until the process has ended: a closed one would end it.
    messages = process.stderr.read()
    assert process.wait() == 1
    assert messages.startswith("Traceback")
    assert "ProgramFileError: " in messages.splitlines()[-1]
    process.stdin.close()
    process.stderr.close()


@pytest.mark.slow
def test_the_process_ends_and_removes_its_files_when_its_parent_does(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    process = worker(folder / "job", "-c", WITHOUT_END)
    process.stdin.close()
    assert process.wait(timeout=120) == -signal.SIGKILL
    assert not folder.exists()
    process.stderr.close()
