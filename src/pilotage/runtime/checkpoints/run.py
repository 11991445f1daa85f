"""The run that a process trains: started by its first checkpoint, or continued from a restored one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from pilotage.errors import OptionError
from pilotage.runtime.checkpoints.files import CheckpointFile, Stamp


@dataclass(kw_only=True)
class CheckpointRun:
    """The run of a wrapped model's checkpoints, the same in all processes of a job."""

    name: str | None = None
    """None before the run is started or restored."""

    attempt: str = ""
    saves: int = 0
    resumed: bool = False
    _folders: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Folders that belong to this run, each with the position of the file that it was restored from."""

    @staticmethod
    def proposed() -> str:
        """A name that no other run has."""
        return secrets.token_hex(8)

    def begin(self, name: str, attempt: str, folder: Path, restored: CheckpointFile | None) -> None:
        """Save under this name from now on."""
        self.name, self.attempt, self.saves, self.resumed = name, attempt, 0, restored is not None
        self._folders = {folder.resolve(): (-1, -1) if restored is None else restored.place}

    def owns(self, folder: Path) -> bool:
        """Whether a folder is known to hold no checkpoints of another run."""
        return folder.resolve() in self._folders

    def take(self, folder: Path) -> None:
        """Note that a folder holds no checkpoints of another run."""
        self._folders.setdefault(folder.resolve(), _EVERYTHING)

    def restored_place(self, folder: Path) -> tuple[int, int]:
        """Files that earlier attempts wrote after this position are obsolete."""
        return self._folders.get(folder.resolve(), _EVERYTHING)

    def stamp(self, files: list[CheckpointFile]) -> Stamp:
        """The stamp of the next checkpoint, after the existing ones."""
        assert self.name is not None
        self.saves += 1
        order = 1 + max((file.place[0] for file in files), default=0)
        return Stamp(run=self.name, attempt=self.attempt, number=self.saves, order=order, resumed=self.resumed)

    def foreign(self, files: list[CheckpointFile]) -> list[CheckpointFile]:
        """Files that this run has not written."""
        return [file for file in files if file.stamp is None or file.stamp.run != self.name]


_EVERYTHING = (2**63, 0)
"""A position after all files."""


def refuse_folder(folder: Path, last: str) -> OptionError:
    """The error for a folder with checkpoints of another run; ``last`` was written last."""
    return OptionError(
        f"{folder} contains checkpoints of another run; the last one is {last}. Call "
        f"restore_checkpoint({str(folder)!r}) "
        "before training to continue that run, or save this one to another folder. If the other run is no longer "
        "needed, remove its files. Nothing was saved or removed."
    )
