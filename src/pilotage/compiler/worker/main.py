"""The compiling process: ``python -m pilotage.compiler.worker.main JOB``. It exits when its parent does."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import torch

from pilotage.compiler.cache import NativeCache, write_manifest
from pilotage.compiler.failures import described
from pilotage.compiler.job import CompileJob
from pilotage.compiler.target import set_precision
from pilotage.compiler.toolchain import known_toolchain
from pilotage.compiler.tuning import Tuning
from pilotage.compiler.worker.search import search
from pilotage.execution.host_memory import keep_freed_memory

_NICENESS = 10
"""The increment of the niceness while compiling."""


def main(path: str) -> None:
    """Do one job."""
    threading.Thread(target=_end_with_parent, args=(Path(path).parent,), daemon=True).start()
    job = CompileJob.read(Path(path))
    set_precision(job.precision)
    # As in the process that will run the program, so that it is timed under the same conditions.
    keep_freed_memory()
    cache = NativeCache(job.cache)
    with ThreadPoolExecutor(max_workers=1) as clock:
        # Niceness is per thread: the timing thread started before keeps normal priority.
        clock.submit(threading.get_ident).result()
        os.nice(_NICENESS)
        torch.set_num_threads(job.threads)
        with cache.compiling(job.fingerprint):
            # Another process may have compiled it in the meantime.
            if cache.is_ready(job.fingerprint):
                return
            with known_toolchain(Path(path).parent / "toolchain"):
                search(job, Path(path).parent / "code", clock, partial(_publish, cache, job))
            cache.tidy(job.fingerprint)


def _publish(cache: NativeCache, job: CompileJob, tuning: Tuning, code: Path | None) -> None:
    """Store a way of running the program in the cache, in place of an earlier one."""
    cache.forget(job.fingerprint)
    with cache.building(job.fingerprint) as folder:
        for part in () if code is None else code.iterdir():
            shutil.copytree(part, folder / part.name, copy_function=shutil.copyfile)
        write_manifest(folder, job.fingerprint, tuning, job.about)


def _end_with_parent(scratch: Path) -> None:
    """Exit when standard input closes: the parent holds the other end and never writes."""
    sys.stdin.read()
    shutil.rmtree(scratch, ignore_errors=True)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def _run(path: str) -> int:
    """Do one job; returns the exit status. The last line of standard error describes an error."""
    try:
        main(path)
    except Exception as error:
        traceback.print_exc()
        # The last lines of a traceback may be advice, as in errors of CUDA and of Inductor.
        print(described(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1]))
