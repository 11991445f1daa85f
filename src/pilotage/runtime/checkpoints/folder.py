"""All that training goes on from, in files that are whole or not there.

A folder belongs to one run: the checkpoints that a training writes from its first step on, through all restarts. A run
that was not restored from a folder does not write into one that holds checkpoints of another run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotage.distributed.values import Value
from pilotage.errors import OptionError, ProgramFileError
from pilotage.runtime.checkpoints.files import (
    CheckpointFile,
    file_of,
    files_in,
    processes_in,
    remove_unfinished,
    superfluous,
)
from pilotage.runtime.checkpoints.run import CheckpointRun, refuse_folder
from pilotage.runtime.checkpoints.state import CheckpointContents, load, optimizer_of, refuse_another_model, tensors_of
from pilotage.runtime.executor import Executor
from pilotage.storage.archive import read_archive, write_archive


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where training had got to."""

    step: int
    position: Any
    """What the caller has saved beside it as plain data, the place in the data for instance."""


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a job in one folder: one file for each step and instance, or for each of its stages."""

    folder: Path
    keep: int = 3
    """How many of the last ones stay."""

    run: CheckpointRun = field(default_factory=CheckpointRun)
    """The run that is being trained."""

    def __post_init__(self) -> None:
        if self.keep < 2:
            raise OptionError(
                f"keep is {self.keep}. At least 2 have to stay: an instance may be one behind the others."
            )

    def save(self, executor: Executor, step: int, position: Any = None) -> Path:
        """Write weights, buffers of all replicas, optimizer and random streams, as far as this process has them.

        The first save of a run that was not restored is an exchange: all processes have to come to it.
        """
        _check_position(step, position)
        process, tensors = _process(executor), tensors_of(executor)
        self._claim(executor)
        files = files_in(self.folder, process)
        if others := [file for file in files if file.stamp is not None and file.stamp.run != self.run.name]:
            raise refuse_folder(self.folder, others[-1].described)
        stamp = self.run.stamp(files)
        content = {
            "step": step,
            "position": position,
            **optimizer_of(executor),
            "stamp": stamp.to_data(),
        }
        path = file_of(self.folder, step, process)
        write_archive(path, content, tensors)
        written = CheckpointFile(path=path, step=step, stamp=stamp)
        left = [*(file for file in files if file.path != path), written]
        for old in superfluous(left, self.keep, stamp.attempt, self.run.restored_place(self.folder)):
            old.unlink(missing_ok=True)
        return path

    def restore(self, executor: Executor) -> Checkpoint | None:
        """Go on from the last step that every process has a whole file of; None where nothing was ever saved.

        A damaged file is named in a warning where an older checkpoint is whole in every process, and else in an error.
        """
        process = _process(executor)
        remove_unfinished(self.folder, process)
        files = files_in(self.folder, process)
        own: dict[str, Any] = {
            "process": process,
            "proposed": CheckpointRun.proposed(),
            "keys": [list(file.key) for file in files if file.damage is None],
            "damage": [file.damage for file in files if file.damage is not None],
            "is_first": all(file.is_first for file in files),
            "found": processes_in(self.folder),
        }
        everyone = _of_everyone(executor, own)
        name, attempt = self._agreed_name(everyone)
        damage = [problem for one in everyone for problem in one["damage"]]
        found = self._newest(executor, files, _common_keys(everyone), damage)
        if found is not None:
            refuse_another_model(executor, found)
            load(executor, found)
        self._tell(executor, found, everyone, damage)
        self.run.begin(name, attempt, self.folder, None if found is None else found.file)
        return None if found is None else Checkpoint(step=found.file.step, position=found.content["position"])

    def _claim(self, executor: Executor) -> None:
        """Make sure that the folder is this run's; raises in all processes where it is another's."""
        if self.run.name is not None and self.run.owns(self.folder):
            return
        foreign = self.run.foreign(files_in(self.folder))
        own: dict[str, Any] = {"proposed": CheckpointRun.proposed(), "last": foreign[-1].described if foreign else None}
        # Restored runs have a name that all agree on, and the same folder looks the same to all of them.
        everyone = [own] if self.run.name is not None else _of_everyone(executor, own)
        if last := next((one["last"] for one in everyone if one["last"] is not None), None):
            raise refuse_folder(self.folder, last)
        if self.run.name is None:
            self.run.begin(everyone[0]["proposed"], everyone[0]["proposed"], self.folder, None)
        self.run.take(self.folder)

    def _agreed_name(self, everyone: list[dict[str, Any]]) -> tuple[str, str]:
        """The name of the run in the folder, or a new one; and one for what follows now."""
        runs = {key[0]: key[3] for one in everyone for key in one["keys"] if key[0]}
        if len(runs) > 1:
            listed = ", ".join(f"{name} up to step {step}" for name, step in runs.items())
            raise ProgramFileError(
                f"{self.folder} holds checkpoints of {len(runs)} runs: {listed}. Move those aside that are not to be "
                "continued."
            )
        proposed = everyone[0]["proposed"]
        return next(iter(runs), proposed), proposed

    def _newest(
        self, executor: Executor, files: list[CheckpointFile], keys: list[tuple[Any, ...]], damage: list[str]
    ) -> CheckpointContents | None:
        """The last checkpoint that turns out to be whole in all processes; what is not is added to the damage."""
        here = {file.key: file for file in files}
        for key in reversed(keys):
            contents, problem = _read(here[key])
            problems = [each for each in _of_everyone(executor, problem) if each is not None]
            if not problems:
                return contents
            damage += problems
        return None

    def _tell(
        self, executor: Executor, found: CheckpointContents | None, everyone: list[dict[str, Any]], damage: list[str]
    ) -> None:
        """Warn about what was passed over; raise where training would begin anew although there are checkpoints."""
        if found is not None:
            if damage:
                executor.warn(f"{' '.join(damage)} Training continues from step {found.file.step}.")
            return
        if damage:
            raise ProgramFileError(
                f"No checkpoint in {self.folder} is whole in every process. {' '.join(damage)} Remove the damaged "
                "files to start from the beginning."
            )
        here = {one["process"] for one in everyone}
        strangers = sorted({name for one in everyone for name in one["found"]} - here)
        if all(one["is_first"] for one in everyone) and not strangers:
            if any(one["keys"] for one in everyone):
                executor.warn(
                    f"The first checkpoint in {self.folder} was not finished by every process. Training starts from "
                    "the beginning."
                )
            return
        listed = "; ".join(
            f"{one['process']} has {', '.join(str(key[3]) for key in one['keys']) or 'none'}" for one in everyone
        )
        if strangers:
            listed += f"; {', '.join(strangers)}, which this job does not have, left files"
        raise ProgramFileError(
            f"No checkpoint in {self.folder} is there for every process of this job. The steps of each: {listed}. "
            "Start as many instances and stages as have written them, put the missing files back, or choose another "
            "folder."
        )


def _read(file: CheckpointFile) -> tuple[CheckpointContents | None, str | None]:
    """What a file holds, or what is wrong with it."""
    try:
        content, tensors = read_archive(file.path)
        if not {type(content[name]) for name in ("updates", "loss_scale")} <= {int, float} or "position" not in content:
            raise ProgramFileError(f"{file.path} is damaged: it does not say where training was.")
    except ProgramFileError as error:
        return None, str(error)
    except (FileNotFoundError, KeyError) as error:
        return None, f"{file.path} is damaged: {error!r}."
    return CheckpointContents(file=file, content=content, tensors=tensors), None


def _check_position(step: int, position: Any) -> None:
    if type(step) is not int or not 0 <= step < 10**18:
        raise OptionError(f"step is {step!r}. It has to be a whole number from 0 on.")
    _check_plain(position, 0)


def _check_plain(value: Any, depth: int) -> None:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise OptionError(f"position has keys that are not strings: {value!r}. A file would change them.")
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value if depth <= 100 else ():
            _check_plain(each, depth + 1)
    elif value is not None and not isinstance(value, (str, int, float)):
        raise OptionError(
            f"position holds {value!r}, a {type(value).__name__}. Use numbers, strings, lists and dictionaries."
        )


def _common_keys(everyone: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The saves that all processes have files of, in the order in which they were made."""
    keys = [[tuple(key) for key in one["keys"]] for one in everyone]
    return [key for key in keys[0] if all(key in others for others in keys)]


def _process(executor: Executor) -> str:
    """What files of this process are called: by its instance and, where that is several processes, its stage."""
    instance = f"{executor.execution.instance:04d}"
    return instance if executor.pipeline_group is None else f"{instance}-{executor.pipeline_group.stage:02d}"


def _of_everyone(executor: Executor, value: Value) -> list[Value]:
    if executor.pipeline_group is not None:
        return executor.pipeline_group.peers.gather_everywhere(value)
    return [value] if executor.peers is None else executor.peers.gather(value)
