"""The checkpoint files of one process in a folder: the run and order of each, and which of them to remove."""

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
    """The origin of a checkpoint: files of all processes with the same run, attempt and number belong together."""

    run: str
    """Identifies a training from its first step, through all restarts."""

    attempt: str
    """Identifies the time since the run started or was last restored."""

    number: int
    """How often the attempt has saved, including this time."""

    order: int
    """Grows with every file that this process writes to the folder."""

    resumed: bool
    """Whether the attempt continued from a checkpoint."""

    def to_data(self) -> dict[str, Any]:
        """The stamp as plain data."""
        return asdict(self)

    @classmethod
    def of(cls, content: dict[str, Any]) -> Stamp | None:
        """The stamp in a file; None in files of older versions, which have none."""
        data = content.get("stamp")
        if data is None:
            return None
        kinds = {"run": str, "attempt": str, "number": int, "order": int, "resumed": bool}
        if not isinstance(data, dict) or {name: type(value) for name, value in data.items()} != kinds:
            raise ValueError("it does not say which run it belongs to")
        return cls(**data)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointFile:
    """One file and its metadata; its tensors were not read."""

    path: Path
    step: int
    stamp: Stamp | None
    damage: str | None = None
    """Why it cannot be read."""

    @property
    def described(self) -> str:
        """How messages name the file."""
        return f"step {self.step} ({self.path.name})"

    @property
    def key(self) -> tuple[str, str, int, int]:
        """The same for the files of all processes from one save."""
        if self.stamp is None:
            return ("", "", 0, self.step)
        return (self.stamp.run, self.stamp.attempt, self.stamp.number, self.step)

    @property
    def place(self) -> tuple[int, int]:
        """Its position among the files of its process, in the order of writing."""
        return (0 if self.stamp is None else self.stamp.order, self.step)

    @property
    def is_first(self) -> bool:
        """Whether it is the first checkpoint of its run, so that no older one is expected."""
        return self.stamp is not None and self.stamp.number == 1 and not self.stamp.resumed


def file_of(folder: Path, step: int, process: str) -> Path:
    """The file in which a process saves a step."""
    return folder / _NAME.format(step=step, process=process)


def files_in(folder: Path, process: str | None = None) -> list[CheckpointFile]:
    """The checkpoints of one or all processes, in the order of writing, unreadable ones first."""
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
    """Remove incomplete files of a killed process."""
    for unfinished in folder.glob(f".checkpoint-*-{process}.pilotage.*"):
        unfinished.unlink(missing_ok=True)


def superfluous(files: list[CheckpointFile], keep: int, attempt: str, resumed: tuple[int, int]) -> list[Path]:
    """The files of a process to remove, so that the newest few stay; unreadable ones are never removed.

    Files that training can never continue from go first: those that earlier attempts wrote after the checkpoint from
    which this attempt continued.
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
            raise ValueError(f"its name says step {step}, but its content {content.get('step')}")
        return CheckpointFile(path=path, step=step, stamp=Stamp.of(content))
    except FileNotFoundError:
        return None
    except ProgramFileError as error:
        return CheckpointFile(path=path, step=step, stamp=None, damage=str(error))
    except ValueError as error:
        return CheckpointFile(path=path, step=step, stamp=None, damage=f"{path} is damaged: {error}.")
