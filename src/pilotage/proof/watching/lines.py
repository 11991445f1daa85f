"""The line of the user's own code that is being run."""

from __future__ import annotations

import dis
import sys
import sysconfig
from pathlib import Path
from types import FrameType

__all__ = ["direct_line", "expects_no_end", "is_users", "users_line"]

_PACKAGES = (
    "pilotage",
    "poptorch",
    "popdist",
    "habana_frameworks",
    "pilotage_dropins",
    "horovod",
    "libpvti",
    "popart",
    "poptorch_geometric",
)
_LIBRARY = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib")})
_PILOTAGE = f"{Path(__file__).parents[2]}/"
_known: dict[str, bool] = {}


def users_line(made: object = None) -> str | None:
    """The innermost line outside of libraries, as ``file:line``; None where only libraries run.

    Lines of the constructor of ``made``, whose class may be the user's own, are left out: it is made by their caller.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        known = _known.get(name)
        if known is None:
            known = _known[name] = is_users(name)
        if known and (made is None or not _constructs(frame, made)):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _constructs(frame: FrameType, made: object) -> bool:
    """Whether a frame is a constructor of an object, by its first argument."""
    code = frame.f_code
    return code.co_name == "__init__" and bool(code.co_argcount) and frame.f_locals.get(code.co_varnames[0]) is made


def direct_line() -> str | None:
    """The line that called the function that calls this; None if a library did."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if is_users(frame.f_code.co_filename) else None


def expects_no_end() -> bool:
    """Whether the iterator that calls this was asked for a value by ``next``, in code that does not know its end."""
    frame = sys._getframe(2)
    # Loops have an instruction of their own.
    is_called = "CALL" in dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return is_called and StopIteration.__name__ not in frame.f_code.co_names


def is_users(name: str) -> bool:
    """Whether a file is the user's own, and not of Python, of an installed package or of Pilotage."""
    if name.startswith("<") or "/site-packages/" in name or "/dist-packages/" in name:
        return False
    return not name.startswith((_PILOTAGE, *_LIBRARY, *_folders()))


def _folders() -> list[str]:
    """Where the drop-ins lie, as far as they are imported; an editable installation keeps them anywhere."""
    modules = (sys.modules.get(name) for name in _PACKAGES)
    return [f"{folder}/" for module in modules if module is not None for folder in getattr(module, "__path__", ())]
