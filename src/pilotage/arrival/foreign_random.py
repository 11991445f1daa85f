"""Random numbers outside of torch: those of Python's and numpy's global generators."""

from __future__ import annotations

import random
import sys
from typing import Any


class ForeignRandomNumbers:
    """Remembers the states of Python's and numpy's generators."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), _of_numpy()

    @property
    def were_drawn(self) -> bool:
        """Whether numbers have been drawn since then, in any thread."""
        return random.getstate() != self._python or _plain(_of_numpy()) != _plain(self._numpy)

    def restore(self) -> None:
        """Put the generators back."""
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy.random"].set_state(self._numpy)


def _of_numpy() -> tuple[Any, ...] | None:
    """The state of numpy's global generator; None if numpy is not used, or the generator is of another kind."""
    module = sys.modules.get("numpy.random")
    state = None if module is None else module.get_state()
    return state if isinstance(state, tuple) else None


def _plain(state: tuple[Any, ...] | None) -> list[Any] | None:
    return None if state is None else [each.tolist() if hasattr(each, "tolist") else each for each in state]
