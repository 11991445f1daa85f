"""Finding the checkpoint to resume from: the same step in all processes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmictagger.errors import CheckpointError
from cosmictagger.processes.process_group import Processes
from cosmictagger.records.checkpoints import INDEX, Checkpoints, find, load, named_by_index
from cosmictagger.records.process_log import LOGGER

RESTARTS = ("PILOTAGE_RESTART", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
"""Variables in which poprun, torchrun and SLURM count restarts."""


def is_restarted() -> bool:
    """Whether a launcher restarted this job, which then finishes the remaining steps only."""
    return any(os.environ.get(name, "0") not in ("", "0") for name in RESTARTS)


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint to resume from."""

    path: Path
    state: dict[str, Any]
    is_own: bool
    """Whether it is this run's, so that the position in the data is restored too."""


def find_checkpoint(checkpoints: Checkpoints, location: str, processes: Processes) -> FoundCheckpoint | None:
    """The run's newest checkpoint, or else the configured one."""
    if processes.per_instance_files:
        return _of_instances(checkpoints, location, processes)
    newest = _newest(checkpoints, location) if processes.writes else None
    found = processes.broadcast(None if newest is None else (str(newest.path), newest.state, newest.is_own))
    return None if found is None else FoundCheckpoint(Path(found[0]), found[1], is_own=found[2])


def check_seed(seed: int, found: FoundCheckpoint) -> None:
    """Raise if the configured seed differs from that of the run to resume; 0 means any."""
    began = found.state.get("data", {}).get("train", {}).get("seed") if found.is_own else None
    if seed and began is not None and seed != began:
        raise CheckpointError(
            f"data.seed={seed}, but the run started with {began}: its sequence of events cannot continue. Omit "
            "data.seed, or use another run.id."
        )


def _newest(checkpoints: Checkpoints, location: str) -> FoundCheckpoint | None:
    own = checkpoints.latest()
    if own is None:
        return _asked_for(location)
    named = named_by_index(checkpoints.folder)
    if named is not None and named != own:
        LOGGER.warning(
            "%s names %s as the latest checkpoint, but the newest is %s, and the run continues from that. To go back, "
            "remove the newer files.",
            checkpoints.folder / INDEX,
            named.name,
            own.name,
        )
    return FoundCheckpoint(own, load(own), is_own=True)


def _asked_for(location: str) -> FoundCheckpoint | None:
    path = find(location) if location else None
    return None if path is None else FoundCheckpoint(path, load(path), is_own=False)


def _of_instances(checkpoints: Checkpoints, location: str, processes: Processes) -> FoundCheckpoint | None:
    """Each instance has its own files, and a killed one may lack the last."""
    everyone = processes.gather(checkpoints.steps())
    common = set.intersection(*map(set, everyone))
    if not common:
        _refuse_lost_steps(checkpoints, everyone)
        return _asked_for(location)
    path = checkpoints.path(max(common))
    return FoundCheckpoint(path, load(path), is_own=True)


def _refuse_lost_steps(checkpoints: Checkpoints, everyone: list[list[int]]) -> None:
    """Raise if instances saved more than once but share no step; a job may be killed during its first save."""
    if max(map(len, everyone)) < 2:
        return
    listed = "; ".join(f"instance {number}: {steps or 'none'}" for number, steps in enumerate(everyone))
    raise CheckpointError(
        f"No step in {checkpoints.folder} has a checkpoint of every instance ({listed}). Restore the missing files, or "
        "use another run.id."
    )
