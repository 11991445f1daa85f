"""Read the announcements of running processes, and remove those that dead processes left behind."""

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
from pilotage.monitoring.plurals import pluralized
from pilotage.monitoring.processes import ProcessIdentity, current_namespace
from pilotage.monitoring.run_directory import run_directory_problem
from pilotage.monitoring.run_file import SUFFIX, UNFINISHED

_LARGEST = 1 << 16
_DAY = 24 * 60 * 60.0


@dataclass(frozen=True, slots=True)
class AnnouncedPrograms:
    """The programs of each running process of this user, and notes about the search."""

    programs: dict[int, list[Announcement]]
    notes: tuple[str, ...] = ()


def read_announcements(directories: Sequence[Path]) -> AnnouncedPrograms:
    """Read all announcements; no content of the directories makes it fail."""
    if not directories:
        return AnnouncedPrograms({}, ("PILOTAGE_RUN_DIR is off, so processes are not listed.",))
    try:
        here = current_namespace()
    except OSError as error:
        return AnnouncedPrograms({}, (f"Cannot identify processes on this system: {error}.",))
    reader = _Reader(here)
    for directory in directories:
        reader.read(directory)
    return AnnouncedPrograms(dict(reader.programs), (*reader.notes, *_counts(reader.unreadable, reader.elsewhere)))


@dataclass(slots=True)
class _Reader:
    """Reads directories one after another and collects what it finds."""

    here: str
    """The namespace of this process: only there a PID identifies a process."""

    programs: dict[int, list[Announcement]] = field(default_factory=lambda: defaultdict(list))
    notes: list[str] = field(default_factory=list)
    unreadable: int = 0
    elsewhere: int = 0

    def read(self, directory: Path) -> None:
        """Read one directory."""
        try:
            files = list(_files(directory))
        except OSError as error:
            self.notes.append(f"Cannot read announcements: {error}.")
            return
        for file in files:
            if file.process.namespace != self.here:
                self.elsewhere += file.is_finished
                file.remove_if_old()
            elif not file.process.is_alive():
                file.remove()
            elif file.is_finished:
                self._read_file(file)

    def _read_file(self, file: _File) -> None:
        try:
            announcement = file.announcement()
        except FileNotFoundError:
            # The program ended in the meantime.
            return
        except (OSError, ValueError):
            self.unreadable += 1
            return
        self.programs[file.process.pid].append(announcement)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    process: ProcessIdentity

    @property
    def is_finished(self) -> bool:
        return self.path.suffix == SUFFIX

    def announcement(self) -> Announcement:
        # It may not be a regular file: a pipe would block, and a link would lead elsewhere.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError("not a regular file")
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ValueError("too long")
        return Announcement.from_text(content)

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()

    def remove_if_old(self) -> None:
        """Remove the file of a process in another namespace if it was not written lately: a running one would have."""
        with contextlib.suppress(OSError):
            if time.time() - self.path.lstat().st_mtime > _DAY:
                self.path.unlink()


def _files(directory: Path) -> Iterator[_File]:
    try:
        problem = run_directory_problem(directory)
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


def _counts(unreadable: int, elsewhere: int) -> Iterable[str]:
    if unreadable:
        yield f"{pluralized(unreadable, 'announcement')} could not be read."
    if elsewhere:
        yield f"{pluralized(elsewhere, 'program')} of another container or machine not shown."
