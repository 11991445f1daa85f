"""Where the caches of this user lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pilotage.cache.store import Store
from pilotage.options import environment

EARLIER_NAMES = r"emulation-[0-9a-f]{24}\.so|tmp[a-z0-9_]{8}"
"""What older versions left in the cache of the emulated card."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A directory that holds, or would hold, compiled code."""

    title: str
    path: Path | None
    """None where nothing is kept."""

    earlier_names: str = "(?!)"

    def store(self) -> Store | None:
        """The cache that is there; None where there is no directory. Raises OptionError where others could write to it."""
        if self.path is None or not self.path.is_dir():
            return None
        return Store(self.path, leftovers=self.earlier_names, create=False)


def places(directory: Path | None = None) -> tuple[Place, ...]:
    """The user's caches, or one directory that was named."""
    if directory is not None:
        return (Place(title="Compiled programs", path=directory.expanduser().absolute()),)
    return (
        Place(title="Compiled programs", path=environment.executable_cache()),
        Place(title="Emulated Gaudi card", path=environment.emulation_cache(), earlier_names=EARLIER_NAMES),
    )
