"""The variables of MPICH's mpiexec, and of its derivatives Intel MPI, Cray MPI and MVAPICH."""

from __future__ import annotations

from collections.abc import Mapping

from pilotage.distributed.environments.variables import master_address, number, port_of_job
from pilotage.distributed.world import World

_LOCAL_RANKS = ("MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "MV2_COMM_WORLD_LOCAL_RANK")
_LOCAL_SIZES = ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")


def mpich_world(environment: Mapping[str, str]) -> World | None:
    """The world in PMI's variables; None if there are none.

    As with OpenMPI, MASTER_ADDR has to be set for instances on several hosts.
    """
    if not {"PMI_RANK", "PMI_SIZE"} <= environment.keys():
        return None
    size = number(environment, "PMI_SIZE")
    address, port = master_address(environment)
    one_host = _first(environment, _LOCAL_SIZES) == size
    if address is None and one_host:
        address = "127.0.0.1"
    return World(
        rank=number(environment, "PMI_RANK"),
        size=size,
        local_rank=_first(environment, _LOCAL_RANKS),
        address=address,
        port=port or port_of_job(environment.get("PALS_APID") or environment.get("PMI_JOBID") or ""),
        one_host=one_host,
        launcher="MPICH",
    )


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> int:
    return next((number(environment, name) for name in names if environment.get(name)), 0)
