"""Worlds that OpenMPI's mpirun has started."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import master_address, number, port_of_job
from pilotage.distributed.world import World

_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid")


def openmpi_world(environment: Mapping[str, str]) -> World | None:
    """The world of OpenMPI's variables; None where there are none.

    MPI says nothing about where to meet. On one host that is no question; on several, MASTER_ADDR has to say it.
    """
    if "OMPI_COMM_WORLD_SIZE" not in environment:
        return None
    size = number(environment, "OMPI_COMM_WORLD_SIZE")
    address, port = master_address(environment)
    one_host = number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE", 0) == size
    if address is None and one_host:
        address = "127.0.0.1"
    job = next((environment[name] for name in _JOBS if environment.get(name)), "")
    return World(
        rank=number(environment, "OMPI_COMM_WORLD_RANK"),
        size=size,
        local_rank=number(environment, "OMPI_COMM_WORLD_LOCAL_RANK", 0),
        address=address,
        port=port or port_of_job(job),
        one_host=one_host,
        launcher="OpenMPI",
    )
