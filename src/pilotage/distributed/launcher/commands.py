"""The command line that starts one instance, here or on another host, and the request that its guard reads.

Every user of a host can read command lines, so they hold nothing that identifies the job or that the user has set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pilotage.distributed.environments.poprun import poprun_variables
from pilotage.distributed.launcher import guard
from pilotage.distributed.launcher.job import Job, JobProcess, is_here
from pilotage.distributed.launcher.remote import remote_command
from pilotage.options.environment import JOB_DIRECTORY, RESTART

_FORWARDED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")
_FORWARDED_FAMILIES = ("PILOTAGE_", "POPTORCH_", "POPART_", "POPLAR_", "OMP_", "TORCH_", "NCCL_", "GLOO_")


def command_line(job: Job, process: JobProcess, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The command to execute on this machine to start the guard of an instance on its host."""
    if is_here(process.host):
        return [sys.executable, "-I", "-S", str(Path(guard.__file__))]
    there = [sys.executable, "-I", "-S", "-c", Path(guard.__file__).read_text()]
    return remote_command(
        process.host, there, shell=job.remote_shell, more=job.mpirun_arguments, environment=environment
    )


def guard_request(job: Job, process: JobProcess, restart: int, environment: Mapping[str, str] = os.environ) -> bytes:
    """The line that the guard reads first: the instance's command, directory and variables."""
    forwarded = {name: value for name, value in environment.items() if _is_forwarded(name, job)}
    request = {
        "command": job.command,
        "directory": os.getcwd(),
        "environment": {**({} if is_here(process.host) else forwarded), **instance_variables(job, process, restart)},
        "job_directory": process.world.directory,
        "numa_aware": job.numa_aware,
        "local_rank": process.world.local_rank,
        "instances_per_host": job.instances_per_host,
        "replicas": process.world.replicas_per_instance,
        "stage": process.world.stage or 0,
        "stages": job.stages_per_replica,
    }
    return json.dumps(request).encode() + b"\n"


def instance_variables(job: Job, process: JobProcess, restart: int) -> dict[str, str]:
    """The variables that the launcher sets for an instance."""
    # Unbuffered: lines appear as they are written, and a killed instance loses none.
    variables = {**poprun_variables(process.world), RESTART.name: str(restart), "PYTHONUNBUFFERED": "1"}
    # A job started from inside another job must not find that job's directory.
    return {**job.environment, JOB_DIRECTORY.name: "", **variables}


def _is_forwarded(name: str, job: Job) -> bool:
    return name in _FORWARDED or name in job.exported or name.startswith(_FORWARDED_FAMILIES)
