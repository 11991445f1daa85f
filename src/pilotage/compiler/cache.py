"""The cache of compiled programs: one sealed folder each, found by fingerprint and checked before use.

<root>/<digest>/manifest.json     fingerprint, tuning, and a digest of every other file
<root>/<digest>/<action>/         wrapper and kernels
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from pilotage.cache.limits import Limits, tidy
from pilotage.cache.sealed import MANIFEST, SealedFolder, read_manifest, read_sealed, seal
from pilotage.cache.store import Store
from pilotage.compiler.code import NativeCode
from pilotage.compiler.tuning import Tuning
from pilotage.errors import OptionError, ProgramFileError
from pilotage.options.choices import Tier
from pilotage.program.program import Action
from pilotage.storage.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True)
class Entry:
    """One compiled program."""

    sealed: SealedFolder
    tuning: Tuning
    parts: Mapping[str, str]
    """The fingerprint it was compiled for, part by part."""

    _loaded: dict[tuple[torch.device, Action], NativeCode] = field(default_factory=dict, init=False)

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.sealed.folder

    @property
    def codes(self) -> list[Callable[[torch.device], Mapping[Action, NativeCode]] | None]:
        """Its code as a function of the device, or None if the graph was faster."""
        return [self.code if self.tuning.tier is Tier.COMPILED else None]

    @property
    def digest(self) -> str:
        """A digest of all its files: the manifest has one of each."""
        return hashlib.sha256(self.sealed.text).hexdigest()

    def code(self, device: torch.device) -> dict[Action, NativeCode]:
        """The code of each action on a device, loaded once."""
        return {action: self._code(device, action) for action in Action if self._has(action)}

    def files(self) -> dict[str, bytes]:
        """The contents of all its files; raises if any is missing or changed."""
        return {MANIFEST: self.sealed.text} | {name: self.sealed.read(name) for name in self.sealed.files()}

    def _code(self, device: torch.device, action: Action) -> NativeCode:
        if (device, action) not in self._loaded:
            place = action.value
            self._loaded[device, action] = NativeCode(
                self.folder / place, device, read=lambda name: self.sealed.read(f"{place}/{name}")
            )
        return self._loaded[device, action]

    def _has(self, action: Action) -> bool:
        return any(name.startswith(f"{action.value}/") for name in self.sealed.files())


class NativeCache:
    """A cache directory of compiled programs."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root)
        self.root = self.store.root
        self.limits = Limits.from_environment()

    def folder(self, fingerprint: Fingerprint) -> Path:
        """The folder of a program's compiled code, which may not exist."""
        return self.store.folder(fingerprint.digest)

    def find(self, fingerprint: Fingerprint) -> Entry | None:
        """The compiled code of a program, or None; removes an invalid folder and raises."""
        sealed = self.store.find(fingerprint.digest, fingerprint.parts)
        if sealed is None:
            return None
        try:
            return _entry(sealed)
        except ProgramFileError:
            self.forget(fingerprint)
            raise

    def is_ready(self, fingerprint: Fingerprint) -> bool:
        """Whether the compiled code of a program is here; raises if an invalid folder cannot be removed."""
        try:
            return self.find(fingerprint) is not None
        except ProgramFileError as error:
            if self.folder(fingerprint).exists():
                raise OptionError(f"{error} It cannot be removed either. Remove it, or name another cache.") from error
            return False

    def forget(self, fingerprint: Fingerprint) -> None:
        """Remove a program."""
        self.store.discard(self.folder(fingerprint))

    def why_missing(self, fingerprint: Fingerprint) -> str:
        """What differs from the most similar program in the cache."""
        others = [parts for folder in self.folders() if (parts := _parts(folder)) is not None]
        if not others:
            return "the cache is empty"
        nearest = min(others, key=lambda parts: len(fingerprint.differences(parts)))
        return f"compared with the most similar program there: {'; '.join(fingerprint.differences(nearest))}"

    def compiling(self, fingerprint: Fingerprint) -> AbstractContextManager[None]:
        """Lock the compilation of a program; waits for another process that holds the lock."""
        return self.store.build_lock(fingerprint.digest)

    def building(self, fingerprint: Fingerprint) -> AbstractContextManager[Path]:
        """A folder to build in; it moves to its place in the cache when it is complete."""
        return self.store.building(fingerprint.digest)

    def tidy(self, newest: Fingerprint) -> None:
        """Remove leftovers of interrupted builds and what exceeds the limits; the newest program stays."""
        tidy(self.store, self.limits, keep=newest.digest)

    def folders(self) -> list[Path]:
        """The folder of each compiled program."""
        return [path for path in self.store.entries() if path.is_dir()]


def write_manifest(
    folder: Path, fingerprint: Fingerprint, tuning: Tuning, about: Mapping[str, str] | None = None
) -> None:
    """Seal a folder; ``about`` describes the program for people."""
    seal(folder, {"parts": dict(fingerprint.parts), "tuning": tuning.to_data(), "about": dict(about or {})})


def read_entry(folder: Path) -> Entry:
    """The program in a folder; raises if any file has changed."""
    sealed = read_sealed(folder)
    if sealed is None:
        raise ProgramFileError(f"The compiled code in {folder} is being removed.")
    return _entry(sealed)


def _entry(sealed: SealedFolder) -> Entry:
    try:
        return Entry(sealed, Tuning.from_data(sealed.manifest["tuning"]), sealed.manifest["parts"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProgramFileError(f"The compiled code in {sealed.folder} has no readable manifest: {error}") from error


def _parts(folder: Path) -> dict[str, str] | None:
    try:
        parts: dict[str, str] = read_manifest(folder)["parts"]
    except (ProgramFileError, KeyError):
        return None
    return parts if isinstance(parts, dict) else None
