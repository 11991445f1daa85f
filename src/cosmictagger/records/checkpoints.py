"""Writing, indexing, pruning and finding checkpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cosmictagger.errors import CheckpointError
from cosmictagger.records.original_files import as_read, as_written
from pilotage import write_whole

INDEX = "checkpoint"
_NAME = re.compile(r"model-(\d+)(?:-(\d+))?\.ckpt")


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a folder; only the newest are kept.

    Each PopDist instance has its own files, ``model-<step>-<instance>.ckpt``.
    """

    folder: Path
    keep: int = 5
    instance: int | None = None

    def save(self, step: int, state: Mapping[str, Any]) -> Path:
        """Write a checkpoint and the index, then remove old checkpoints."""
        path = self.folder / self._name(step)
        write_whole(path, lambda file: torch.save(as_written(state), file))
        # A higher step is left from an abandoned attempt, so it is older than the new checkpoint.
        steps = sorted(self._steps_of(self.instance), key=lambda each: (each > step, -each))
        names = [self._name(each) for each in steps[: self.keep]]
        lines = [f"latest: {path.name}", *(f"{each}: {name}" for each, name in zip(steps, names, strict=False))]
        write_whole(self.folder / self._index(), "".join(f"{line}\n" for line in lines).encode())
        for old in steps[self.keep :]:
            (self.folder / self._name(old)).unlink(missing_ok=True)
        return path

    def steps(self) -> list[int]:
        """Steps that this instance can resume from, newest first."""
        own = self._steps_of(self.instance) if self.instance else []
        # A new instance resumes from the first instance's checkpoints.
        return sorted({*own, *self._steps_of(None), *([] if own else self._steps_of(0))}, reverse=True)

    def path(self, step: int) -> Path:
        """The checkpoint of a step: this instance's, or that of a run with other instances."""
        names = (self._name(step), f"model-{step}.ckpt", f"model-{step}-0.ckpt")
        paths = [self.folder / name for name in names]
        return next((path for path in paths if path.is_file()), paths[0])

    def latest(self) -> Path | None:
        """The newest checkpoint, found without the index, which may be outdated after a crash."""
        steps = self.steps()
        return self.path(steps[0]) if steps else None

    def _steps_of(self, instance: int | None) -> list[int]:
        names = (_NAME.fullmatch(path.name) for path in self.folder.glob("model-*.ckpt"))
        wanted = None if instance is None else str(instance)
        return sorted((int(name[1]) for name in names if name and name[2] == wanted), reverse=True)

    def _name(self, step: int) -> str:
        return f"model-{step}.ckpt" if self.instance is None else f"model-{step}-{self.instance}.ckpt"

    def _index(self) -> str:
        return f"{INDEX}-{self.instance}" if self.instance else INDEX

    def sweep(self) -> None:
        """Remove unfinished files of this instance that a crash left."""
        checkpoints = "*ckpt" if self.instance is None else f"*-{self.instance}.ckpt"
        for name in (checkpoints, self._index()):
            for pattern in (f".{name}.*.part", f"{name}.part"):
                for unfinished in self.folder.glob(pattern):
                    unfinished.unlink(missing_ok=True)


def find(location: str) -> Path:
    """The checkpoint at a path: a file, a folder of checkpoints or its index, or a run's folder."""
    given = Path(location)
    if given.name == INDEX and given.is_file():
        given = given.parent
    if given.is_file():
        return given
    for folder in (given, given / "checkpoints"):
        if (named := named_by_index(folder)) is not None:
            return named
        if (latest := Checkpoints(folder).latest()) is not None:
            return latest
    raise CheckpointError(
        f"mode.weights_location={location} holds no checkpoint. Give a model-<step>.ckpt or its folder."
    )


def weights_of_run(location: str, folder: Path) -> Path:
    """The requested checkpoint, or the newest one of a run."""
    path = find(location) if location else Checkpoints(folder / "checkpoints").latest()
    if path is None:
        raise CheckpointError(f"No checkpoint in {folder / 'checkpoints'}. Train first, or set mode.weights_location.")
    return path


def named_by_index(folder: Path) -> Path | None:
    """The checkpoint that a folder's index calls the latest, if it is there."""
    index = folder / INDEX
    if not index.is_file():
        return None
    found = re.match(r"latest: (\S+)", index.read_text())
    path = folder / Path(found[1]).name if found else None
    return path if path is not None and path.is_file() else None


def load(path: Path) -> dict[str, Any]:
    """Load a checkpoint, ours or the original's, under our names and without executing anything in it."""
    try:
        state = _content(path)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise CheckpointError(
            f"{path} cannot be read as a checkpoint ({reason}). If it is truncated or damaged, remove it to resume "
            "from the previous one."
        ) from None
    if not isinstance(state, dict) or "state_dict" not in state:
        raise CheckpointError(f"{path} is not a checkpoint of CosmicTagger: it has no state_dict.")
    return as_read(state)


def _content(path: Path) -> Any:
    """The content of a file, of torch's types and numpy's numbers: the original's learning rates are such."""
    import numpy as np
    from numpy._core.multiarray import scalar

    # Files that were written with numpy 1 name the same function by its old module.
    names = ("numpy._core.multiarray.scalar", "numpy.core.multiarray.scalar")
    kinds: list[Any] = [*((scalar, name) for name in names), np.dtype, type(np.dtype(np.float64))]
    with torch.serialization.safe_globals(kinds):
        return torch.load(path, map_location="cpu", weights_only=True)
