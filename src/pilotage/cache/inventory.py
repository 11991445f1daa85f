"""The items in a cache, and their states."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pilotage.cache.locks import abandoned
from pilotage.cache.private_files import ForeignFileError
from pilotage.cache.sealed import MANIFEST, UnsealedError, read_manifest, read_sealed
from pilotage.cache.store import Store, is_used, name_of, size_of
from pilotage.errors import ProgramFileError

DAMAGED_NAME = "its name is not the digest of what it was compiled for"


class State(StrEnum):
    """The state of an item in a cache."""

    READY = "ready"
    IN_USE = "in use"
    """Loaded by a running program."""
    BUILDING = "building"
    """A running process is building it."""
    OUTDATED = "outdated"
    """Written by an older version; no longer used."""
    LEFTOVER = "leftover"
    """Left by an interrupted build."""
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    """A link, or a file that others own or could have changed; never executed."""

    @property
    def is_wrong(self) -> bool:
        """Whether something went wrong."""
        return self in (State.LEFTOVER, State.DAMAGED, State.FOREIGN)

    @property
    def is_useless(self) -> bool:
        """Whether it will never be used."""
        return self.is_wrong or self is State.OUTDATED


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """An entry of a cache, or a leftover in it."""

    path: Path
    state: State
    size: int
    used: float
    """The time of the last use, in seconds since 1970."""

    detail: str = ""
    """The problem, if any."""

    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in the directory."""
        return self.path.name

    @property
    def created(self) -> float | None:
        """When it was completed, in seconds since 1970."""
        return float(self.manifest["created"]) if "created" in self.manifest else None

    @property
    def about(self) -> Mapping[str, str]:
        """A description for people."""
        return _texts(self.manifest.get("about"))

    @property
    def parts(self) -> Mapping[str, str]:
        """What it was built for."""
        return _texts(self.manifest.get("parts"))


def take_inventory(store: Store, *, verify: bool = False) -> list[Item]:
    """All items in a cache; ``verify`` also compares every file with its digest."""
    entries = [_entry(path, verify=verify) for path in store.entries()]
    return [*entries, *(_leftover(path) for path in store.leftovers())]


def _entry(path: Path, *, verify: bool) -> Item:
    manifest: Mapping[str, Any] = {}
    state, detail = State.READY, ""
    try:
        manifest = read_manifest(path)
        in_use = is_used(path)
        if verify:
            read_sealed(path)
        if name_of(_texts(manifest.get("parts"))) != path.name:
            raise ProgramFileError(DAMAGED_NAME)
        state = State.IN_USE if in_use else State.READY
    except ForeignFileError as error:
        state, detail = State.FOREIGN, _short(error, path)
    except UnsealedError as error:
        state, detail = State.OUTDATED, _short(error, path)
    except ProgramFileError as error:
        state, detail = State.DAMAGED, _short(error, path)
    return Item(path=path, state=state, size=size_of(path), used=_used(path), detail=detail, manifest=manifest)


def _leftover(path: Path) -> Item:
    with abandoned(path) as is_free:
        state = State.LEFTOVER if is_free else State.BUILDING
    return Item(path=path, state=state, size=size_of(path), used=_modified(path))


def _short(error: ProgramFileError, path: Path) -> str:
    """The problem, without the name of the folder."""
    text = str(error.__cause__ or error)
    return text.replace(f"{path}{os.sep}", "").removeprefix(f"{path} ").rstrip(".")


def _used(path: Path) -> float:
    return _modified(path if path.is_symlink() else path / MANIFEST) or _modified(path)


def _modified(path: Path) -> float:
    try:
        # After the clock is set back, an old file must not look new forever.
        return min(path.lstat().st_mtime, time.time())
    except OSError:
        return 0.0


def _texts(value: Any) -> dict[str, str]:
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, dict) else {}
