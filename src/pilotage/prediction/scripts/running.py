"""Runs a script or a function until it reaches the program to predict."""

from __future__ import annotations

import importlib
import inspect
import runpy
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilotage.errors import PilotageError, PredictionError
from pilotage.prediction.prediction import Traced
from pilotage.prediction.replacing import replaced
from pilotage.prediction.scripts.programs import stopping_at_programs
from pilotage.prediction.scripts.reached import Reached
from pilotage.prediction.scripts.updates import UpdateWatch
from pilotage.prediction.scripts.valueless import Valueless
from pilotage.prediction.subject import Subject
from pilotage.program.graphs.source_lines import is_users
from pilotage.torch_private import FakeTensorMode

__all__ = ["Found", "find"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What was found in a script when it was ended."""

    what: Subject | Traced
    mode: FakeTensorMode
    """The mode of the module's tensors."""

    values_read: int
    """How often the script read values that do not exist."""


def find(target: str, arguments: Sequence[str] = ()) -> Found:
    """Run a script, or a function given as ``module:function``, up to its first program or update."""
    call, name = _callable(target, arguments)
    updates = UpdateWatch(name)
    valueless = Valueless(updates.observe)
    try:
        with ExitStack() as stack:
            stack.enter_context(stopping_at_programs(name))
            stack.enter_context(updates.watching())
            stack.enter_context(valueless)
            stack.enter_context(warnings.catch_warnings())
            # Torch looks at the gradients of real tensors that are used together with tensors without values.
            warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
            call()
    except Reached as reached:
        return Found(what=reached.found, mode=valueless.mode, values_read=valueless.values_read)
    except PilotageError:
        raise
    except SystemExit as end:
        raise PredictionError(f"{target} ended with status {end.code!r} before its first training step.") from None
    except Exception as error:
        raise PredictionError(
            f"{target} failed before its first training step{_place(error)}: {type(error).__name__}: {error}"
        ) from error
    raise PredictionError(
        f"{target} ended without a call of a program (poptorch or pilotage.training) and without an optimizer's step, "
        "so no update can be predicted. If it needs arguments to train, give them after --."
    )


def _place(error: Exception) -> str:
    """Where the user's code failed: the innermost line of it."""
    library = sysconfig.get_path("stdlib")
    frames = [
        each
        for each in traceback.extract_tb(error.__traceback__)
        if is_users(each.filename)
        and not each.filename.startswith(("<", library))
        and "site-packages" not in each.filename
    ]
    return f", at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def _callable(target: str, arguments: Sequence[str]) -> tuple[Callable[[], Any], str]:
    if Path(target).suffix == ".py" or Path(target).is_file():
        if not Path(target).is_file():
            raise PredictionError(f"The script {target!r} does not exist.")
        return lambda: _run_script(Path(target), arguments), Path(target).name
    module, colon, function = target.partition(":")
    if not colon or not function:
        raise PredictionError(f"{target!r} is neither a script that exists nor of the form module:function.")
    return lambda: _call(module, function, arguments), target


def _run_script(script: Path, arguments: Sequence[str]) -> None:
    with (
        replaced(sys, "argv", [str(script), *arguments]),
        replaced(sys, "path", [str(script.resolve().parent), *sys.path]),
    ):
        runpy.run_path(str(script), run_name="__main__")


def _call(module: str, function: str, arguments: Sequence[str]) -> None:
    with (
        replaced(sys, "argv", [f"{module}:{function}", *arguments]),
        replaced(sys, "path", [str(Path.cwd()), *sys.path]),
    ):
        try:
            found = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise PredictionError(f"{module}:{function} cannot be found: {error}.") from None
        # A function without parameters may read the command line itself.
        found(*(arguments if inspect.signature(found).parameters else ()))
