"""Compiled programs on disk: one folder each, found by fingerprint and checked before use.

<root>/<digest>/manifest.json     fingerprint, tuning, and a digest of every other file
<root>/<digest>/<action>/         wrapper and kernels
<root>/<digest>.lock              held by the process that compiles
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pilotage.backends.native.code import NativeCode
from pilotage.backends.native.directory import private_directory
from pilotage.backends.native.tuning import Tuning
from pilotage.errors import ProgramFileError
from pilotage.program.fingerprint import Fingerprint
from pilotage.program.program import Action

_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One compiled program."""

    folder: Path
    tuning: Tuning
    parts: Mapping[str, str]
    """The fingerprint that it was compiled for."""

    def code(self, device: torch.device, actions: Mapping[Action, Any]) -> dict[Action, NativeCode]:
        """Load the code of each action that has some."""
        return {action: NativeCode(self.folder / action.value, device) for action in actions if self._has(action)}

    def _has(self, action: Action) -> bool:
        return (self.folder / action.value).is_dir()


class NativeCache:
    """A directory of compiled programs."""

    def __init__(self, root: Path) -> None:
        self.root = private_directory(root)

    def folder(self, fingerprint: Fingerprint) -> Path:
        """Where a program's compiled code lies, or would lie."""
        return self.root / fingerprint.digest

    def find(self, fingerprint: Fingerprint) -> Entry | None:
        """The compiled code of a program, if it is there; raises if it is damaged, and removes it then."""
        folder = self.folder(fingerprint)
        if not folder.is_dir():
            return None
        try:
            return read_entry(folder)
        except ProgramFileError:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def forget(self, fingerprint: Fingerprint) -> None:
        """Drop what is here of a program."""
        shutil.rmtree(self.folder(fingerprint), ignore_errors=True)

    def why_missing(self, fingerprint: Fingerprint) -> str:
        """What differs from the most similar program that is here."""
        others = [parts for folder in self.folders() if (parts := _parts(folder)) is not None]
        if not others:
            return "the cache is empty"
        nearest = min(others, key=lambda parts: len(fingerprint.differences(parts)))
        return f"compared with the most similar program there: {'; '.join(fingerprint.differences(nearest))}"

    @contextlib.contextmanager
    def compiling(self, fingerprint: Fingerprint) -> Iterator[None]:
        """Be the only process that compiles a program; waits for another one that does."""
        with (self.root / f"{fingerprint.digest}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def building(self, fingerprint: Fingerprint) -> Iterator[Path]:
        """A folder to build in; it takes its place in the cache once it is whole."""
        build = Path(tempfile.mkdtemp(dir=self.root, prefix=f".{fingerprint.digest}."))
        try:
            yield build
            os.replace(build, self.folder(fingerprint))
        finally:
            shutil.rmtree(build, ignore_errors=True)

    def folders(self) -> list[Path]:
        """Where each compiled program lies."""
        return [path for path in self.root.iterdir() if path.is_dir() and not path.name.startswith(".")]


def write_manifest(folder: Path, fingerprint: Fingerprint, tuning: Tuning) -> None:
    """Seal a folder."""
    manifest = {"parts": dict(fingerprint.parts), "tuning": tuning.to_data(), "digests": _digests(folder)}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1))


def read_entry(folder: Path) -> Entry:
    """The program in a folder; raises if anything in it is not as it was written."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        tuning, expected, parts = Tuning.from_data(manifest["tuning"]), manifest["digests"], manifest["parts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ProgramFileError(f"The compiled code in {folder} has no readable manifest: {error}") from error
    found = _digests(folder)
    if changed := sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)):
        raise ProgramFileError(
            f"The compiled code in {folder} is damaged: {', '.join(changed)} is not what was written."
        )
    return Entry(folder, tuning, parts)


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _MANIFEST
    }


def _parts(folder: Path) -> dict[str, str] | None:
    try:
        parts: dict[str, str] = json.loads((folder / _MANIFEST).read_text())["parts"]
    except (OSError, ValueError, KeyError):
        return None
    return parts
