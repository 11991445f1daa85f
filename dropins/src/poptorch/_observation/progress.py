"""The progress bar of a compilation."""

from __future__ import annotations

from typing import Any

from pilotage.engine import CompilationProgress, Event, progress_bar

__all__ = ["ProgressBar"]

_LOOK = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"


class ProgressBar:
    """Listener that draws ``Graph compilation: 100%|██████████| 100/100 [00:09<00:00]``."""

    hears_calls = False
    """It draws compilations only."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._may_begin = True

    def __call__(self, event: Event) -> None:
        """Advance the bar; does nothing without tqdm."""
        if not isinstance(event, CompilationProgress):
            return
        if event.fraction == 0.0:
            self.close()
            # The choice of a device is logged next: start the bar below that line.
            self._may_begin = True
            return
        if self._may_begin:
            self._bar = progress_bar(total=100, description="Graph compilation", bar_format=_LOOK)
            self._may_begin = False
        if self._bar is not None:
            self._bar.update(round(100 * event.fraction) - self._bar.n)
        if event.fraction == 1.0:
            self.close()

    def close(self) -> None:
        """Close the bar at its current position."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
