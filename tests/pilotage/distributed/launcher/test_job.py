from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.launcher.job import Job, is_here
from pilotage.errors import OptionError


@given(hosts=st.integers(1, 4), per_host=st.integers(1, 4), replicas=st.integers(1, 4))
def test_hosts_get_equally_many_instances_and_instances_equally_many_replicas(hosts, per_host, replicas):
    names = tuple(f"host{number}" for number in range(hosts))
    job = Job(command=("true",), instances=hosts * per_host, replicas=hosts * per_host * replicas, hosts=names)
    processes = job.processes("host0", 1234)
    assert [process.world.rank for process in processes] == list(range(job.instances))
    assert [process.host for process in processes] == [name for name in names for _ in range(per_host)]
    assert [process.world.local_rank for process in processes] == list(range(per_host)) * hosts
    assert {process.world.replicas for process in processes} == {job.replicas}


@given(hosts=st.integers(1, 3), per_host=st.integers(1, 3), stages=st.integers(2, 4))
def test_the_stages_of_an_instance_are_on_one_host_and_only_the_first_one_prints(hosts, per_host, stages):
    names = tuple(f"host{number}" for number in range(hosts))
    instances = hosts * per_host
    job = Job(command=("true",), instances=instances, replicas=instances, stages_per_replica=stages, hosts=names)
    processes = job.processes("host0", 1234)
    assert [process.world.process for process in processes] == list(range(instances * stages))
    assert {process.world.processes for process in processes} == {instances * stages}
    for rank in range(instances):
        own = processes[rank * stages : (rank + 1) * stages]
        assert {(process.host, process.world.rank, process.world.size) for process in own} == {
            (names[rank // per_host], rank, instances)
        }
        assert [process.shows_output for process in own] == [True] + [False] * (stages - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": ()}, "No program to start"),
        ({"instances": 0}, "number of instances is 0"),
        ({"replicas": -1}, "number of replicas is -1"),
        ({"stages_per_replica": 0}, "IPUs per replica is 0"),
        ({"instances": 2, "replicas": 3}, "3 replicas cannot be divided evenly among 2 instances"),
        ({"instances": 3, "replicas": 3, "hosts": ("a", "b")}, "3 instances cannot be divided evenly among 2 hosts"),
        ({"only_output_from": 1}, "--only-output-from-instance is 1"),
        ({"max_restarts": -1}, "--max-restarts is -1"),
        ({"instances": 10**12, "replicas": 10**12, "link_domains": 10**12}, "A job has at most 65536"),
    ],
)
def test_an_invalid_job_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Job(**{"command": ("true",), **options})


def test_this_machine_is_recognised_by_its_names():
    assert is_here("localhost")
    assert is_here("127.0.0.1")
    assert not is_here("another.host.example")


def test_a_job_cannot_exceed_its_link_domains():
    assert Job(command=("x",), replicas=16, stages_per_replica=4).devices == 64
    with pytest.raises(
        OptionError, match=r"17 replicas with 4 IPUs each are 68 IPUs, and 1 link domain has 64.*--num-ilds"
    ):
        Job(command=("x",), replicas=17, stages_per_replica=4)
    assert Job(command=("x",), replicas=17, stages_per_replica=4, link_domains=2).devices == 68
    assert Job(command=("x",), instances=2, replicas=128, hosts=("one", "two")).devices == 128


def test_a_wrong_network_is_refused_before_anything_starts():
    with pytest.raises(OptionError, match="--host-subnet is 'eth0'"):
        Job(command=("x",), subnet="eth0")
