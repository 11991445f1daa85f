"""Run a script in this process, followed by the hooks of a profile."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from pilotage.errors import ProfileError
from pilotage.prediction.document import Report
from pilotage.profiling.assembly import report_of
from pilotage.profiling.request import Request
from pilotage.profiling.subject import Enough
from pilotage.profiling.watch import ScriptWatch

__all__ = ["profile_script"]


def profile_script(request: Request) -> Report:
    """Run a script until enough was measured; the hooks stay, so a process runs only one script."""
    if not request.script.is_file():
        raise ProfileError(f"The script {str(request.script)!r} does not exist.")
    watch = ScriptWatch(request)
    watch.install()
    problem = _run(request)
    subject = watch.chosen()
    if subject is None or not subject.seconds:
        done = 0 if subject is None else subject.updates
        raise ProfileError(_too_little(request, done, problem))
    if problem is not None:
        subject.facts.notes.append(f"The script failed before the end of the profile: {problem}.")
    return report_of(request, subject, watch)


def _too_little(request: Request, done: int, problem: str | None) -> str:
    if problem is not None:
        return f"{request.script} failed after {done} updates: {problem}."
    if done == 0:
        return (
            f"{request.script} ended without an update: no optimizer was stepped, and no program of Pilotage or "
            "PopTorch was called."
        )
    return (
        f"{request.script} ended after {done} updates, all of them part of the warm-up. Give it more data or epochs, "
        f"or use --warmup with a number below {done}."
    )


def _run(request: Request) -> str | None:
    """Run the script as a main program; the error that ended it, if one did."""
    with _as_main(request):
        try:
            runpy.run_path(str(request.script), run_name="__main__")
        except Enough:
            return None
        except SystemExit as end:
            return None if end.code in (None, 0) else f"it exited with {end.code}"
        except Exception as error:
            traceback.print_exc()
            return f"{type(error).__name__}: {error}"
    return None


@contextmanager
def _as_main(request: Request) -> Iterator[None]:
    """The arguments and the import path that Python gives to a script."""
    arguments, path = sys.argv, list(sys.path)
    sys.argv = [str(request.script), *request.arguments]
    sys.path.insert(0, str(request.script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = arguments, path
