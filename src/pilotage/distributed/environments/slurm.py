"""The variables of SLURM's srun."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import is_on_one_host, master_address, number, port_of_job
from pilotage.distributed.host_list import expand_hosts
from pilotage.distributed.world import World


def slurm_world(environment: Mapping[str, str]) -> World | None:
    """The world of a SLURM step; None outside a step, as in the batch script itself."""
    if not {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS"} <= environment.keys():
        return None
    address, port = master_address(environment)
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST") or ""
    if address is None and nodes:
        address = expand_hosts(nodes)[0]
    hosts = number(environment, "SLURM_STEP_NUM_NODES", 0) or number(environment, "SLURM_NNODES", 0)
    job = f"{environment.get('SLURM_JOB_ID', '')}.{environment['SLURM_STEP_ID']}"
    return World(
        rank=number(environment, "SLURM_PROCID"),
        size=number(environment, "SLURM_NTASKS"),
        local_rank=number(environment, "SLURM_LOCALID", 0),
        address=address,
        port=port or port_of_job(job),
        one_host=hosts == 1 if hosts else is_on_one_host(environment, address),
        launcher="SLURM",
    )
