"""What a training goes on from: in several processes, the same step in all of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmictagger.errors import CheckpointError
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import Checkpoints, find, load

RESTARTS = ("PILOTAGE_RESTART", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
"""Where poprun, torchrun and SLURM say how often they had to start a job again."""


def is_restarted() -> bool:
    """Whether a launcher has started this job again, which then has to do no more than was left of it."""
    return any(os.environ.get(name, "0") not in ("", "0") for name in RESTARTS)


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint that was found."""

    path: Path
    state: dict[str, Any]
    is_own: bool
    """Whether it is this run's, so that the place in the data counts, too."""


def find_checkpoint(checkpoints: Checkpoints, location: str, processes: Processes) -> FoundCheckpoint | None:
    """The run's own newest checkpoint, or else the one that was asked for."""
    if processes.per_instance_files:
        return _of_instances(checkpoints, location, processes)
    newest = _newest(checkpoints, location) if processes.writes else None
    told = processes.broadcast(None if newest is None else (str(newest.path), newest.state, newest.is_own))
    return None if told is None else FoundCheckpoint(Path(told[0]), told[1], is_own=told[2])


def check_seed(seed: int, found: FoundCheckpoint) -> None:
    """Raise where another order of events is asked for than the one that the run would go on with; 0 asks for none."""
    began = found.state.get("data", {}).get("train", {}).get("seed") if found.is_own else None
    if seed and began is not None and seed != began:
        raise CheckpointError(
            f"data.seed={seed}, and the run began with {began}: its sequence of events cannot go on. Leave data.seed out, or "
            "start with another run.id."
        )


def _newest(checkpoints: Checkpoints, location: str) -> FoundCheckpoint | None:
    own = checkpoints.latest()
    return FoundCheckpoint(own, load(own), is_own=True) if own is not None else _asked_for(location)


def _asked_for(location: str) -> FoundCheckpoint | None:
    path = find(location) if location else None
    return None if path is None else FoundCheckpoint(path, load(path), is_own=False)


def _of_instances(checkpoints: Checkpoints, location: str, processes: Processes) -> FoundCheckpoint | None:
    """Each instance has files of its own, and one that was killed may lack the last."""
    everyone = processes.gather(checkpoints.steps())
    common = set.intersection(*map(set, everyone))
    if not common:
        _refuse_lost_steps(checkpoints, everyone)
        return _asked_for(location)
    path = checkpoints.path(max(common))
    return FoundCheckpoint(path, load(path), is_own=True)


def _refuse_lost_steps(checkpoints: Checkpoints, everyone: list[list[int]]) -> None:
    """Raise where instances have saved more than once and share no step; a job may be killed in its first save."""
    if max(map(len, everyone)) < 2:
        return
    listed = "; ".join(f"instance {number}: {steps or 'none'}" for number, steps in enumerate(everyone))
    raise CheckpointError(
        f"No step in {checkpoints.folder} has a checkpoint of every instance ({listed}). Put the missing files back, or start "
        "with another run.id."
    )
