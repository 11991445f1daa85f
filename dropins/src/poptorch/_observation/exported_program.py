"""A compiled program in readable form: in the file that POPTORCH_EXPORT_PROTO_FILE names, and in the log."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pilotage.engine import Program, program_to_data, write_archive
from poptorch._logging import TRACE, backend_logger, logger

__all__ = ["show_program"]


def show_program(program: Program) -> None:
    """Write and log a program if environment variables request it."""
    path = os.environ.get("POPTORCH_EXPORT_PROTO_FILE")
    if path and any(computation.graph is None for computation in program.computations.values()):
        logger.warning("POPTORCH_EXPORT_PROTO_FILE is set, but the eager tier has no program to write.")
    elif path:
        _export(program, Path(path), as_binary=os.environ.get("POPTORCH_EXPORT_PROTO_FILE_AS_BINARY", "0") != "0")
    if backend_logger.isEnabledFor(TRACE):
        backend_logger.log(TRACE, "%s", _shortened(_listing(program)))


def _export(program: Program, path: Path, *, as_binary: bool) -> None:
    content, constants = program_to_data(program)
    path.parent.mkdir(parents=True, exist_ok=True)
    if as_binary:
        write_archive(path, content, constants)
    else:
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _listing(program: Program) -> str:
    graphs = {action.value: each.graph for action, each in program.computations.items() if each.graph is not None}
    return "\n".join(f"{name}:\n{graph.graph}" for name, graph in graphs.items())


def _shortened(text: str) -> str:
    limit = os.environ.get("POPTORCH_MAX_GRAPH_LEN")
    if not limit:
        return text
    try:
        longest = int(limit)
    except ValueError:
        raise ValueError(f"POPTORCH_MAX_GRAPH_LEN is {limit!r}. It must be a whole number.") from None
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest} more characters)"
