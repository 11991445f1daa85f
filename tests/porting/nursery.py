"""Watched runs of many scripts from one process that has imported torch already: each run is a fork of it.

Importing torch takes longer than a script of the corpus. `python nursery.py` reads one request per line, as JSON with
`script`, `arguments`, `folder`, `variables` and `settings`, runs it as `pilotage prove` would, and answers with its
exit status.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from pilotage.options import environment
from pilotage.proof.records import read_run
from pilotage.proof.running import WatchedRun
from pilotage.proof.watching.settings import WatchSettings

_IMPORTED = (
    "numpy",
    "torch",
    "torch.distributed",
    "torch.nn.functional",
    "torch.optim.lr_scheduler",
    "torch.utils.data",
    "pilotage.engine",
    "pilotage.runtime.executor",
)


class Nursery:
    """A process that forks watched runs."""

    def __init__(self) -> None:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PILOTAGE_CHECK": "off"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
        )

    def run(
        self,
        script: Path,
        arguments: list[str],
        folder: Path,
        *,
        steps: int,
        variables: dict[str, str] | None = None,
        seconds: float = 240.0,
    ) -> WatchedRun:
        """Run a script in a folder of its own; the record of its training is beside it."""
        records = folder / "record"
        records.mkdir(parents=True, mode=0o700)
        settings = WatchSettings(folder=str(records), steps=steps)
        request = {
            "script": str(script),
            "arguments": arguments,
            "folder": str(folder),
            "settings": settings.as_text(),
            "variables": variables or {},
            "seconds": seconds,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        errors = (folder / "stderr").read_text(errors="replace")
        assert status == 0, errors[-3000:]
        return WatchedRun(
            name=script.stem,
            command=(sys.executable, str(script), *arguments),
            settings=settings,
            record=read_run(records),
            status=status,
            seconds=0.0,
        )

    def close(self) -> None:
        """End the process."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def serve() -> None:
    """Answer requests until there are no more."""
    # What takes long to import comes with torch or the engine; no script is known by it.
    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(request)
        timer = threading.Timer(request["seconds"], os.kill, [child, 9])
        timer.start()
        _, status = os.waitpid(child, 0)
        timer.cancel()
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(request: dict[str, Any]) -> None:
    """Become the script; this does not return."""
    folder, script = Path(request["folder"]), request["script"]
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), stream)
    os.chdir(folder)
    os.environ.update(request["variables"])
    os.environ[environment.PROOF.name] = str(request["settings"])
    sys.argv = [script, *request["arguments"]]
    sys.path[0] = str(Path(script).parent)
    status = 0
    try:
        from pilotage.proof.watching.start import start

        start()
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
