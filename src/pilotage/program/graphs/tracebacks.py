"""Shortens the tracebacks of errors that reach the user: their own frames stay, ours and torch's go.

A capture has about a hundred frames between the line that calls a model and the line of its forward that fails.
PILOTAGE_TRACEBACK=full keeps them all.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import FrameType, TracebackType

from pilotage.errors import PilotageError
from pilotage.options import environment
from pilotage.program.graphs.source_lines import is_users
from pilotage.program.graphs.straight_line import FILE_NAME

_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_INSTALLED = ("site-packages", "dist-packages")


class ShortTracebacks(AbstractContextManager[None]):
    """Shortens the traceback of an error that leaves the block; one instance serves all threads."""

    def __init__(self, *, meant_for_users: type[BaseException] = PilotageError) -> None:
        self._meant_for_users = meant_for_users

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Shorten the error, if it is one that programs catch."""
        if isinstance(error, Exception):
            shorten(error, meant_for_users=self._meant_for_users)


def shorten(error: BaseException, *, meant_for_users: type[BaseException] = PilotageError) -> None:
    """Remove frames that are not the user's from an error that leaves Pilotage; a note says how to see them.

    An error keeps all its frames if Pilotage raised it outside the user's code and did not mean it for users: it is
    then a fault of Pilotage, and the frames show where.
    """
    if environment.shows_full_tracebacks():
        return
    chain = list(_chain(error))
    frames = [frame for each in reversed(chain) for frame, _ in _walk(each.__traceback__)]
    shown = sum(map(_is_shown, frames))
    is_explained = isinstance(error, meant_for_users) or any(isinstance(each, PilotageError) for each in chain)
    if not shown and not is_explained and frames and _is_ours(frames[-1]):
        return
    for each in chain:
        each.__traceback__ = _shown_part(each.__traceback__)
    if is_explained:
        _absorb_causes(error, chain)
    if hidden := len(frames) - shown:
        error.add_note(
            f"[pilotage] {hidden} frames of Pilotage and torch are hidden; PILOTAGE_TRACEBACK=full shows them."
        )


def _absorb_causes(error: BaseException, chain: list[BaseException]) -> None:
    """Show only our error, at the user's line where its cause was raised: its text explains the cause."""
    if error.__traceback__ is None:
        error.__traceback__ = next((each.__traceback__ for each in chain if each.__traceback__ is not None), None)
    error.__suppress_context__ = True
    # The cause stays reachable as __context__.
    error.__context__ = error.__cause__ or error.__context__
    error.__cause__ = None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those that Python prints before it."""
    seen: set[int] = set()
    present: BaseException | None = error
    while present is not None and id(present) not in seen:
        seen.add(id(present))
        yield present
        present = present.__cause__ or (None if present.__suppress_context__ else present.__context__)


def _walk(traceback: TracebackType | None) -> Iterator[tuple[FrameType, TracebackType]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback
        traceback = traceback.tb_next


def _shown_part(traceback: TracebackType | None) -> TracebackType | None:
    kept: TracebackType | None = None
    for frame, entry in reversed(list(_walk(traceback))):
        if _is_shown(frame):
            kept = TracebackType(kept, frame, entry.tb_lasti, entry.tb_lineno)
    return kept


def _is_shown(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    if not is_users(name) or _belongs_to_torch(frame):
        return False
    return not name.startswith(_STANDARD_LIBRARY) or any(folder in name for folder in _INSTALLED)


def _belongs_to_torch(frame: FrameType) -> bool:
    """Whether torch has the code, or generated it: then it has no module."""
    return str(frame.f_globals.get("__name__", "torch")).partition(".")[0] == "torch"


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame is of Pilotage or a package over it, and not of a program that it runs."""
    name = frame.f_code.co_filename
    return not is_users(name) and not name.startswith(FILE_NAME) and not _belongs_to_torch(frame)
