from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotage.distributed.launcher.job import Job
from pilotage.distributed.launcher.topology import topology

DOCUMENTED = """\
 ===========================
|      poprun topology      |
|===========================|
| hosts     | gc-poplar-02  |
|-----------|---------------|
| ILDs      |       0       |
|-----------|---------------|
| instances |       0       |
|-----------|---------------|
| replicas  | 0 | 1 | 2 | 3 |
 ---------------------------"""


def test_the_table_is_the_documented_one():
    assert topology(Job(command=("x",), replicas=4, hosts=("gc-poplar-02",))) == DOCUMENTED


@given(hosts=st.integers(1, 4), per_host=st.integers(1, 4), replicas=st.integers(1, 8))
def test_the_cells_of_all_rows_align(hosts, per_host, replicas):
    names = tuple(f"a-host-with-a-name-{number}" for number in range(hosts))
    job = Job(command=("x",), instances=hosts * per_host, replicas=hosts * per_host * replicas, hosts=names)
    table = [line for line in topology(job).splitlines() if not line.startswith("[")]
    assert len({len(line) for line in table if line.startswith("|")}) == 1
    rows = [line.strip("|").split("|") for line in table if line.startswith("| ") and "poprun" not in line]
    assert [len(cells) - 1 for cells in rows] == [hosts, 1, job.instances, job.replicas]
    assert [cell.strip() for cell in rows[-1][1:]] == [str(number) for number in range(job.replicas)]


def test_link_domains_are_those_requested():
    named = [topology(Job(command=("x",), replicas=4, link_domains=domains)).splitlines()[5] for domains in (2, 3)]
    assert named == ["| ILDs      |   0   |   1   |", "| ILDs      |      0-2      |"]


NARROW = """\
 ===============
| poprun top... |
|===============|
| hosts     | . |
|-----------|---|
| ILDs      | 0 |
|-----------|---|
| instances | 0 |
|-----------|---|
| replicas  | 0 |
 ---------------
[0]: localhost"""


def test_host_names_that_do_not_fit_are_listed_below():
    assert topology(Job(command=("x",))) == NARROW


def test_the_number_of_stage_processes_is_printed_below():
    job = Job(command=("x",), replicas=4, hosts=("gc-poplar-02",), stages_per_replica=3)
    assert topology(job) == f"{DOCUMENTED}\nEach instance is 3 processes, one per stage of its replicas."
