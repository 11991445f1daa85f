"""Python imports this at its start, in every process of a watched command.

Without the variable that says what to record, it does nothing. A `sitecustomize` of the user's that this one hides is
imported afterwards.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _run_hidden() -> None:
    """Run the user's own sitecustomize, which Python would have imported without this one."""
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _watch() -> None:
    root = str(_HERE.parents[2])
    added = importlib.util.find_spec("pilotage") is None
    if added:
        sys.path.append(root)
    from pilotage.proof.watching.start import start

    start()


if __name__ == "sitecustomize":
    _watch()
    _run_hidden()
