"""Prove a port before it is written: run the original and the port, and compare."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pilotage.errors import PortingError

if TYPE_CHECKING:
    from pilotage.porting.report import Report

__all__ = ["prove_port"]

_NOT_OF_THE_PORT = ("loss-depends-on-batch-split",)
"""Findings about the original, which a port keeps."""


def prove_port(report: Report, arguments: Namespace) -> bool:
    """Whether original and port train the same; prints the proof."""
    from pilotage.cli.prove.running import show
    from pilotage.proof.comparison import Verdict
    from pilotage.proof.proof import Request, prove

    entry = _entry(report, arguments.entry)
    with _ported(report, entry, arguments.paths) as script:
        given = tuple(arguments.script_arguments)
        request = Request(
            before=(sys.executable, str(entry), *given),
            after=(sys.executable, str(script), *given),
            steps=arguments.steps,
        )
        proof = prove(request)
        show(proof)
        for failure in proof.failures:
            print(f"pilotage port: {failure}", file=sys.stderr)
        others = [each for each in proof.findings if each.name not in _NOT_OF_THE_PORT]
        if others or proof.failures:
            return False
        return proof.comparison is not None and proof.comparison.verdict is Verdict.SAME


def _entry(report: Report, given: Path | None) -> Path:
    """The script to run."""
    paths = [each.path for each in report.files if each.path.suffix == ".py"]
    if given is not None:
        found = [path for path in paths if path.resolve() == given.resolve()]
        if not found:
            raise PortingError(f"--entry is {str(given)!r}, which is not one of the ported scripts.")
        return found[0]
    if len(paths) == 1:
        return paths[0]
    runnable = [path for path in paths if "__main__" in path.read_text(encoding="utf-8", errors="replace")]
    if len(runnable) != 1:
        raise PortingError("Several scripts could be run for the proof. Choose one with --entry SCRIPT.")
    return runnable[0]


@contextmanager
def _ported(report: Report, entry: Path, paths: list[Path]) -> Iterator[Path]:
    """The ported script at a place where it finds what the original finds beside it."""
    folders = [path for path in paths if path.is_dir()]
    root = next((path for path in folders if entry.resolve().is_relative_to(path.resolve())), entry.parent)
    if not folders and len(report.files) == 1:
        # Beside the original, so that it imports the same modules.
        handle, name = tempfile.mkstemp(prefix=f"{entry.stem}_ported_", suffix=".py", dir=entry.parent)
        os.close(handle)
        script = Path(name)
        try:
            script.write_text(report.files[0].after, encoding="utf-8")
            yield script
        finally:
            script.unlink(missing_ok=True)
        return
    place = Path(tempfile.mkdtemp(prefix="pilotage-port-"))
    try:
        copy = place / root.resolve().name
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", ".venv"), symlinks=True)
        for file in report.files:
            target = copy / file.path.resolve().relative_to(root.resolve())
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(file.after, encoding="utf-8")
        yield copy / entry.resolve().relative_to(root.resolve())
    finally:
        shutil.rmtree(place, ignore_errors=True)
