"""A notice to all processes of a world that one of them cannot do its part of what they do together."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from pilotage.torch_private import get_default_store


@dataclass(frozen=True, slots=True)
class CalledOff:
    """Whether something that all processes do together was called off; any of them can look while it works."""

    name: str
    """The same in all processes, and in no other notice."""

    def announce(self) -> None:
        """Call it off."""
        with suppress(RuntimeError):
            if (store := get_default_store()) is not None:
                store.set(self._key, "")

    @property
    def is_announced(self) -> bool:
        """Whether a process has called it off."""
        # The store ends with the first process, which the next exchange reports.
        with suppress(RuntimeError):
            store = get_default_store()
            return store is not None and bool(store.check([self._key]))
        return False

    @property
    def _key(self) -> str:
        return f"pilotage called off {self.name}"
