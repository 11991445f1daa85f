"""The cache directories of this user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pilotage.cache.store import Store
from pilotage.options import environment

OLD_EMULATION_FILES = r"emulation-[0-9a-f]{24}\.so|tmp[a-z0-9_]{8}"
"""Names of files that older versions left in the cache of the emulated card."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheDirectory:
    """A directory for compiled code, which may not exist yet."""

    title: str
    path: Path | None
    """None if the cache is off."""

    old_files: str = "(?!)"

    def store(self) -> Store | None:
        """Open the cache; None if the directory does not exist. Raises OptionError if others could write to it."""
        if self.path is None or not self.path.is_dir():
            return None
        return Store(self.path, leftovers=self.old_files, create=False)


def cache_directories(directory: Path | None = None) -> tuple[CacheDirectory, ...]:
    """The user's caches, or the given directory."""
    if directory is not None:
        return (CacheDirectory(title="Compiled programs", path=directory.expanduser().absolute()),)
    return (
        CacheDirectory(title="Compiled programs", path=environment.executable_cache()),
        CacheDirectory(title="Emulated Gaudi card", path=environment.emulation_cache(), old_files=OLD_EMULATION_FILES),
    )
