"""The checkpoint files of one process in a folder: which run wrote each of them, in which order, and which may go."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pilotage.errors import ProgramFileError
from pilotage.storage.archive import read_content

_NAME = "checkpoint-{step:08d}-{process}.pilotage"
_PATTERN = re.compile(r"checkpoint-(\d{8,18})-(\d+(?:-\d+)?)\.pilotage")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """Who wrote a checkpoint: files of all processes with the same run, attempt and number belong together."""

    run: str
    """Of a training from its first step on, through all restarts."""

    attempt: str
    """Of the time since the run was begun or last restored."""

    number: int
    """How many times the attempt has saved, this one included."""

    order: int
    """Of all files of this process in the folder, those with a lower one were written before."""

    resumed: bool
    """Whether the attempt went on from a checkpoint."""

    def to_data(self) -> dict[str, Any]:
        """The stamp as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, content: dict[str, Any]) -> Stamp | None:
        """The stamp in a file; None in files that were written before there were stamps."""
        data = content.get("stamp")
        if data is None:
            return None
        kinds = {"run": str, "attempt": str, "number": int, "order": int, "resumed": bool}
        if not isinstance(data, dict) or {name: type(value) for name, value in data.items()} != kinds:
            raise ValueError("it does not say which run it belongs to")
        return cls(**data)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointFile:
    """One file, as far as its content says; its tensors have not been looked at."""

    path: Path
    step: int
    stamp: Stamp | None
    damage: str | None = None
    """Why it cannot be read."""

    @property
    def described(self) -> str:
        """The file in a message."""
        return f"step {self.step} ({self.path.name})"

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Equal in the files of all processes that were written by one save."""
        if self.stamp is None:
            return ("", "", 0, self.step)
        return (self.stamp.run, self.stamp.attempt, self.stamp.number, self.step)

    @property
    def place(self) -> tuple[int, int]:
        """Its place among the files of its process, by when they were written."""
        return (0 if self.stamp is None else self.stamp.order, self.step)

    @property
    def is_first(self) -> bool:
        """Whether it is the very first checkpoint of its run, so that there need not be an older one."""
        return self.stamp is not None and self.stamp.number == 1 and not self.stamp.resumed


def file_of(folder: Path, step: int, process: str) -> Path:
    """Where a process saves a step."""
    return folder / _NAME.format(step=step, process=process)


def files_in(folder: Path, process: str | None = None) -> list[CheckpointFile]:
    """The checkpoints of a process, or of all; in the order in which they were written, unreadable ones first."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    matches = [(path, match) for path in paths if (match := _PATTERN.fullmatch(path.name))]
    found = [_looked_at(path, int(match[1])) for path, match in matches if process in (None, match[2])]
    files = [file for file in found if file is not None]
    return sorted(files, key=lambda file: (file.damage is None, file.place))


def processes_in(folder: Path) -> list[str]:
    """Which processes have checkpoints in a folder, of this job or of another."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted({match[2] for name in names if (match := _PATTERN.fullmatch(name))})


def remove_unfinished(folder: Path, process: str) -> None:
    """Remove what a process left half-written when it was killed."""
    for unfinished in folder.glob(f".checkpoint-*-{process}.pilotage.*"):
        unfinished.unlink(missing_ok=True)


def superfluous(files: list[CheckpointFile], keep: int, attempt: str, resumed: tuple[int, int]) -> list[Path]:
    """Which files of a process may go, so that the last few stay; one that cannot be read is left to the user.

    Those go first that training can never go on from: what earlier attempts wrote after the checkpoint which this
    attempt went on from.
    """

    def rank(file: CheckpointFile) -> tuple[bool, tuple[int, int]]:
        is_abandoned = (file.stamp is None or file.stamp.attempt != attempt) and file.place > resumed
        return (not is_abandoned, file.place)

    readable = [file for file in files if file.damage is None]
    return [file.path for file in sorted(readable, key=rank)[:-keep]]


def _looked_at(path: Path, step: int) -> CheckpointFile | None:
    try:
        content = read_content(path)
        if content.get("step") != step:
            raise ValueError(f"its name says step {step}, and its content {content.get('step')}")
        return CheckpointFile(path=path, step=step, stamp=Stamp.of(content))
    except FileNotFoundError:
        return None
    except ProgramFileError as error:
        return CheckpointFile(path=path, step=step, stamp=None, damage=str(error))
    except ValueError as error:
        return CheckpointFile(path=path, step=step, stamp=None, damage=f"{path} is damaged: {error}.")
