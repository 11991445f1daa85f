"""Which line of the user's program is running."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

_FOREIGN = (str(Path(torch.__file__).parent) + "/", str(Path(__file__).parents[1]) + "/")
NOWHERE = "in a thread of torch's own"


def running_line() -> str:
    """Return ``file:line`` of the innermost frame that belongs neither to torch nor to this package."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_FOREIGN) and not name.startswith("<"):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return NOWHERE
