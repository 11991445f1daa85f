"""The command line that starts one instance, here or on another host, and what its guard is told by standard input.

Every user of a host can read command lines, so nothing stands there that identifies the job or that the user has set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pilotage.distributed.environments.poprun import poprun_variables
from pilotage.distributed.launcher import guard
from pilotage.distributed.launcher.job import Job, Place, is_here
from pilotage.distributed.launcher.remote import remote_command
from pilotage.options.environment import JOB_DIRECTORY, RESTART

_FORWARDED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")
_FORWARDED_FAMILIES = ("PILOTAGE_", "POPTORCH_", "POPART_", "POPLAR_", "OMP_", "TORCH_", "NCCL_", "GLOO_")


def command_line(job: Job, place: Place, environment: Mapping[str, str] = os.environ) -> list[str]:
    """What is executed on this machine to have a guard run in the place of the instance."""
    if is_here(place.host):
        return [sys.executable, "-I", "-S", str(Path(guard.__file__))]
    there = [sys.executable, "-I", "-S", "-c", Path(guard.__file__).read_text()]
    return remote_command(place.host, there, shell=job.remote_shell, more=job.mpirun_arguments, environment=environment)


def description(job: Job, place: Place, restart: int, environment: Mapping[str, str] = os.environ) -> bytes:
    """The line that the guard reads first: the instance's command, directory and variables."""
    forwarded = {name: value for name, value in environment.items() if _is_forwarded(name, job)}
    told = {
        "command": job.command,
        "directory": os.getcwd(),
        "environment": {**({} if is_here(place.host) else forwarded), **variables(job, place, restart)},
        "job_directory": place.world.directory,
        "numa_aware": job.numa_aware,
        "local_rank": place.world.local_rank,
        "instances_per_host": job.instances_per_host,
        "replicas": place.world.replicas_per_instance,
        "stage": place.world.stage or 0,
        "stages": job.stages_per_replica,
    }
    return json.dumps(told).encode() + b"\n"


def variables(job: Job, place: Place, restart: int) -> dict[str, str]:
    """What an instance finds in its environment besides what is there already."""
    # Unbuffered, so that lines are shown as they are said, and none is lost with an instance that is killed.
    told = {**poprun_variables(place.world), RESTART.name: str(restart), "PYTHONUNBUFFERED": "1"}
    # A job that an instance of another one starts would find the directory of that one.
    return {**job.environment, JOB_DIRECTORY.name: "", **told}


def _is_forwarded(name: str, job: Job) -> bool:
    return name in _FORWARDED or name in job.exported or name.startswith(_FORWARDED_FAMILIES)
