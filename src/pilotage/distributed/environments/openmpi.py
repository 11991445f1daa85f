"""The variables of OpenMPI's mpirun."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import master_address, number, port_of_job
from pilotage.distributed.world import World

_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid")


def openmpi_world(environment: Mapping[str, str]) -> World | None:
    """The world in OpenMPI's variables; None if there are none.

    MPI has no variable for the rendezvous address. One host needs none; on several, MASTER_ADDR has to be set.
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
