"""The variables of MPICH's mpiexec."""

from pilotage.distributed.environments import world_from
from pilotage.distributed.environments.mpich import mpich_world


def test_ranks_are_read_from_pmi():
    told = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MASTER_ADDR": "node0", "MASTER_PORT": "2345"}
    world = mpich_world(told)
    assert (world.rank, world.size, world.local_rank) == (3, 4, 1)
    assert (world.address, world.port, world.launcher) == ("node0", 2345, "MPICH")
    assert world_from(told) == world


def test_processes_of_one_host_meet_on_that_host():
    world = mpich_world({"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_LOCAL_SIZE": "2", "PMI_LOCAL_RANK": "0"})
    assert world.address == "127.0.0.1"
    assert world.port == mpich_world({"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_LOCAL_SIZE": "2"}).port


def test_without_pmi_variables_there_is_no_world():
    assert mpich_world({"PMI_RANK": "0"}) is None


def test_slurm_takes_precedence_over_its_own_pmi():
    told = {"PMI_RANK": "0", "PMI_SIZE": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    assert world_from(told).launcher == "SLURM"
