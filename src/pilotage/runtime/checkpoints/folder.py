"""Everything needed to resume training, in files that are complete or absent.

A folder belongs to one run, which is a training from its first step through all restarts. A run that was not restored
from a folder does not write to it if it contains checkpoints of another run.
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
    """The position of the training that was saved."""

    step: int
    position: Any
    """Plain data of the caller, such as the position in the data."""


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a job in one folder: one file for each step and instance, or for each of its stages."""

    folder: Path
    keep: int = 3
    """How many checkpoints are kept."""

    run: CheckpointRun = field(default_factory=CheckpointRun)
    """The run that is being trained."""

    def __post_init__(self) -> None:
        if self.keep < 2:
            raise OptionError(
                f"keep is {self.keep}. At least 2 must stay, because an instance may be one checkpoint behind the "
                "others."
            )

    def save(self, executor: Executor, step: int, position: Any = None) -> Path:
        """Write weights, buffers of all replicas, optimizer and random streams, as far as this process has them.

        The first save of a run that was not restored is collective: every process must call it.
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
        """Resume from the last step that every process has saved completely; None if nothing was saved.

        Damaged files are named: in a warning if an older checkpoint is complete in every process, otherwise in an
        error.
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
        """Make sure that the folder belongs to this run; otherwise raise in all processes."""
        if self.run.name is not None and self.run.owns(self.folder):
            return
        foreign = self.run.foreign(files_in(self.folder))
        own: dict[str, Any] = {"proposed": CheckpointRun.proposed(), "last": foreign[-1].described if foreign else None}
        # All processes of a restored run agree on its name and see the same folder.
        everyone = [own] if self.run.name is not None else _of_everyone(executor, own)
        if last := next((one["last"] for one in everyone if one["last"] is not None), None):
            raise refuse_folder(self.folder, last)
        if self.run.name is None:
            self.run.begin(everyone[0]["proposed"], everyone[0]["proposed"], self.folder, None)
        self.run.take(self.folder)

    def _agreed_name(self, everyone: list[dict[str, Any]]) -> tuple[str, str]:
        """The name of the run in the folder, or a new one, and a name for this attempt."""
        runs = {key[0]: key[3] for one in everyone for key in one["keys"] if key[0]}
        if len(runs) > 1:
            listed = ", ".join(f"{name} up to step {step}" for name, step in runs.items())
            raise ProgramFileError(
                f"{self.folder} contains checkpoints of {len(runs)} runs: {listed}. Move away the runs that should "
                "not be continued."
            )
        proposed = everyone[0]["proposed"]
        return next(iter(runs), proposed), proposed

    def _newest(
        self, executor: Executor, files: list[CheckpointFile], keys: list[tuple[Any, ...]], damage: list[str]
    ) -> CheckpointContents | None:
        """The last checkpoint that is complete in all processes; damaged ones are added to the list."""
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
        """Warn about skipped files; raise if training would start over although there are checkpoints."""
        if found is not None:
            if damage:
                executor.warn(f"{' '.join(damage)} Training continues from step {found.file.step}.")
            return
        if damage:
            raise ProgramFileError(
                f"No checkpoint in {self.folder} is complete in every process. {' '.join(damage)} Remove the damaged "
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
            listed += f"; there are also files of {', '.join(strangers)}, which this job does not have"
        raise ProgramFileError(
            f"No checkpoint in {self.folder} exists for every process of this job. The steps of each: {listed}. Start "
            "the same number of instances and stages as before, restore the missing files, or choose another folder."
        )


def _read(file: CheckpointFile) -> tuple[CheckpointContents | None, str | None]:
    """The content of a file, or the problem with it."""
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
        raise OptionError(f"step is {step!r}. It must be a whole number of at least 0.")
    _check_plain(position, 0)


def _check_plain(value: Any, depth: int) -> None:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise OptionError(f"position has keys that are not strings: {value!r}. JSON would change them.")
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value if depth <= 100 else ():
            _check_plain(each, depth + 1)
    elif value is not None and not isinstance(value, (str, int, float)):
        raise OptionError(
            f"position contains {value!r}, a {type(value).__name__}. Use numbers, strings, lists and dictionaries."
        )


def _common_keys(everyone: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The saves for which all processes have files, in order."""
    keys = [[tuple(key) for key in one["keys"]] for one in everyone]
    return [key for key in keys[0] if all(key in others for others in keys)]


def _process(executor: Executor) -> str:
    """The name of this process in file names: its instance and, if stages are processes, its stage."""
    instance = f"{executor.execution.instance:04d}"
    return instance if executor.pipeline_group is None else f"{instance}-{executor.pipeline_group.stage:02d}"


def _of_everyone(executor: Executor, value: Value) -> list[Value]:
    if executor.pipeline_group is not None:
        return executor.pipeline_group.peers.gather_everywhere(value)
    return [value] if executor.peers is None else executor.peers.gather(value)
