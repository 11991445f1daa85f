"""Who has announced himself and is still there; what the dead have left behind is taken away."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pilotage.monitoring.announcement import Announcement
from pilotage.monitoring.counting import counted
from pilotage.monitoring.directory import problem_with
from pilotage.monitoring.identity import ProcessIdentity, place_here
from pilotage.monitoring.run_file import SUFFIX, UNFINISHED

_LARGEST = 1 << 16
_DAY = 24 * 60 * 60.0


@dataclass(frozen=True, slots=True)
class Attendance:
    """The programs of each living process of this user, and what there is to say about finding them."""

    programs: dict[int, list[Announcement]]
    notes: tuple[str, ...] = ()


def take_attendance(directories: Sequence[Path]) -> Attendance:
    """Read all announcements; nothing that lies in the directories makes it fail."""
    if not directories:
        return Attendance({}, ("PILOTAGE_RUN_DIR is off: processes are not looked for.",))
    try:
        here = place_here()
    except OSError as error:
        return Attendance({}, (f"Processes cannot be told apart on this system: {error}.",))
    roll = _Roll(here)
    for directory in directories:
        roll.call(directory)
    return Attendance(dict(roll.programs), (*roll.notes, *_counted(roll.unreadable, roll.elsewhere)))


@dataclass(slots=True)
class _Roll:
    """What has been found so far."""

    here: str
    """Where process numbers count that can be judged."""

    programs: dict[int, list[Announcement]] = field(default_factory=lambda: defaultdict(list))
    notes: list[str] = field(default_factory=list)
    unreadable: int = 0
    elsewhere: int = 0

    def call(self, directory: Path) -> None:
        """Look through one directory."""
        try:
            files = list(_files(directory))
        except OSError as error:
            self.notes.append(f"Announcements cannot be read: {error}.")
            return
        for file in files:
            if file.process.place != self.here:
                self.elsewhere += file.is_finished
                file.remove_if_old()
            elif not file.process.lives():
                file.remove()
            elif file.is_finished:
                self._read(file)

    def _read(self, file: _File) -> None:
        try:
            said = file.announcement()
        except FileNotFoundError:
            # The program has left meanwhile.
            return
        except (OSError, ValueError):
            self.unreadable += 1
            return
        self.programs[file.process.pid].append(said)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    process: ProcessIdentity

    @property
    def is_finished(self) -> bool:
        return self.path.suffix == SUFFIX

    def announcement(self) -> Announcement:
        # Something else than a file may have been put there: a pipe would keep us waiting, a link lead elsewhere.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError("no file")
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError("too long")
        return Announcement.from_text(content)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()

    def remove_if_old(self) -> None:
        """Whether its process lives cannot be known from here, but a living one would have written lately."""
        with contextlib.suppress(OSError):
            if time.time() - self.path.lstat().st_mtime > _DAY:
                self.path.unlink()


def _files(directory: Path) -> Iterator[_File]:
    try:
        problem = problem_with(directory)
        names = [] if problem else os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    if problem:
        raise PermissionError(problem)
    for name in sorted(names):
        path = directory / name
        process = ProcessIdentity.from_name(path.stem) if path.suffix in (SUFFIX, UNFINISHED) else None
        if process is not None:
            yield _File(path, process)


def _counted(unreadable: int, elsewhere: int) -> Iterable[str]:
    if unreadable:
        yield f"{counted(unreadable, 'announcement')} cannot be read."
    if elsewhere:
        which = (
            "1 process has announced itself" if elsewhere == 1 else f"{elsewhere} processes have announced themselves"
        )
        yield f"{which} from another container or machine, and cannot be judged from here."
