from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.environments import world_from
from pilotage.distributed.environments.variables import is_on_one_host, number, port_of_job
from pilotage.errors import OptionError


@given(st.integers())
def test_numbers_are_read_as_they_are_written(value):
    assert number({"N": f" {value} "}, "N") == value


def test_a_missing_number_takes_its_default_or_is_named():
    assert number({}, "N", 3) == 3
    with pytest.raises(OptionError, match="N is missing"):
        number({}, "N")
    with pytest.raises(OptionError, match="N is 'two'"):
        number({"N": "two"}, "N")


@given(st.text())
def test_ports_of_jobs_are_unprivileged_and_below_the_ephemeral_range(job):
    assert 1024 < port_of_job(job) < 32768


def test_the_first_recognised_launcher_is_used():
    slurm = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    mpi = {"OMPI_COMM_WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "0"}
    torchrun = {"RANK": "0", "WORLD_SIZE": "1"}
    poprun = {"POPDIST_NUM_TOTAL_REPLICAS": "1"}
    assert world_from({}) is None
    found: dict[str, str] = {}
    for variables, launcher in [(slurm, "SLURM"), (mpi, "OpenMPI"), (torchrun, "torchrun"), (poprun, "poprun")]:
        found |= variables
        assert world_from(found).launcher == launcher


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("node0", False),
        (None, False),
    ],
)
def test_a_loopback_address_means_one_host_but_not_in_a_pod(address, expected):
    assert is_on_one_host({}, address) is expected
    assert is_on_one_host({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, address) is False
