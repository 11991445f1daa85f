"""Serves packages that programs import around PopTorch, if nothing else is installed under their names.

Python asks the finder after all others, so an installed package always wins. A file in site-packages imports this
module when Python starts, because programs import these packages before ``poptorch``; importing it has to stay cheap.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["FOLDERS", "NAMES", "Fallbacks", "serve"]

NAMES = frozenset({"horovod", "libpvti", "popart", "poptorch_geometric"})
"""The packages that are served."""

_HERE = os.path.dirname(os.path.abspath(__file__))

FOLDERS = (os.path.join(_HERE, "fallback"), os.path.join(os.path.dirname(os.path.dirname(_HERE)), "fallback"))
"""Where they are: in the installed package, or beside the sources."""


class Fallbacks(MetaPathFinder):
    """Finds the served packages; their submodules are found by Python itself."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where to load a served package from; None for every other name."""
        return PathFinder.find_spec(fullname, list(FOLDERS)) if fullname in NAMES else None


def serve() -> None:
    """Put the finder behind all others, unless it is there."""
    if not any(isinstance(finder, Fallbacks) for finder in sys.meta_path):
        sys.meta_path.append(Fallbacks())


serve()
