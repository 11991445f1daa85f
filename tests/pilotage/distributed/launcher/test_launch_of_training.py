"""A killed instance ends the job; a restarted job ends as if undisturbed."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).with_name("killed_training.py")
SAMPLES = 80
UPDATES = 60
"""Twelve epochs."""
HELD = 50
"""The first try stops here and waits for its end."""
WITHOUT_END = 1_000_000
WITHIN = 20.0
"""Seconds from the kill to the end of the job; most of the time they are less than one."""
LONG_SEEDS = [pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10)]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job runs: its arguments for poprun, and the host of each instance."""

    hosts: tuple[str, ...] = ("localhost",) * 2
    words: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, folder: Path, updates: int, held: int = 0, restarts: int = 0) -> tuple[object, ...]:
        folder.mkdir(exist_ok=True)
        options = (*self.words, f"--num-instances={len(self.hosts)}", f"--max-restarts={restarts}")
        return (*options, sys.executable, SCRIPT, folder, updates, held)


@pytest.fixture
def here() -> Place:
    return Place()


@pytest.fixture
def on_two_hosts(two_hosts) -> Place:
    hosts = ("10.77.0.1",) * 2 + ("10.77.0.2",) * 2
    return Place(hosts=hosts, words=("--host=10.77.0.[1-2]",), environment={"PILOTAGE_REMOTE_SHELL": two_hosts})


@pytest.fixture(scope="module")
def kept_folder(tmp_path_factory):
    """A folder for reference results that several tests share."""
    return tmp_path_factory.mktemp("undisturbed")


@pytest.fixture
def undisturbed(poprun, kept_folder):
    """The folder of an undisturbed job."""

    def run(place: Place) -> Path:
        folder = kept_folder / f"{len(place.hosts)}"
        if not folder.exists():
            status, _, errors = poprun(*place.command(folder, UPDATES), **place.environment)
            assert status == 0, errors
        return folder

    return run


@pytest.fixture
def kill(start_poprun, left_of):
    """Starts a job, kills one instance at a given moment, and waits for the job; returns its status and errors."""

    def run(place: Place, folder: Path, victim: int, moment: str, **options: int) -> tuple[int, str]:
        job = start_poprun(*place.command(folder, **options), **place.environment)
        try:
            until_noted(job, victim, moment)
            killed = process_of(folder, 0, victim)
            os.kill(killed, signal.SIGKILL)
            since = time.monotonic()
            _, errors = job.communicate(timeout=200)
        finally:
            job.kill()
            job.communicate()
        assert options.get("restarts") or time.monotonic() - since < WITHIN
        failed = (
            f"Instance {victim} on {place.hosts[victim]} was the first to fail, by signal SIGKILL. The other processes"
        )
        assert errors.count("was the first to fail") == 1, errors
        assert failed in errors, errors
        assert "ends" not in [words[0] for words in noted(folder, 0, victim)]
        assert not left_of(process_of(folder, *each) for each in instances_of(folder))
        return job.returncode, errors

    return run


def until_noted(job, rank: int, moment: str) -> None:
    for line in job.stdout:
        if f"note {rank} {moment} " in f"{line.rstrip()} ":
            return
    pytest.fail(f"The job ended before instance {rank} came to {moment!r}: {job.stderr.read()}")


def noted(folder: Path, tries: int, rank: int) -> list[list[str]]:
    # The last line of a killed process may be incomplete.
    text = (folder / f"notes-{tries}-{rank}").read_text()
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]


def instances_of(folder: Path) -> list[tuple[int, int]]:
    """The attempt and rank of every instance that made progress."""
    names = (re.fullmatch(r"notes-(\d+)-(\d+)", path.name) for path in folder.iterdir())
    return [(int(name[1]), int(name[2])) for name in names if name and noted(folder, int(name[1]), int(name[2]))]


def process_of(folder: Path, tries: int, rank: int) -> int:
    return int(noted(folder, tries, rank)[0][1])


def updates_of(folder: Path, tries: int, rank: int) -> dict[int, list[str]]:
    """The samples of each update that an instance started."""
    found = noted(folder, tries, rank) if (tries, rank) in instances_of(folder) else []
    return {int(words[1]): words[2:] for words in found if words[0] == "update"}


def begin_of(folder: Path, tries: int, rank: int) -> int:
    ((_, number),) = [words for words in noted(folder, tries, rank) if words[0] == "begins"]
    return int(number)


def moment_of(chance: random.Random) -> str:
    """Before the rendezvous, before the first update, or mostly in any update or checkpoint."""
    later = [f"{chance.choice(('update', 'saves'))} {chance.randrange(HELD - 5)}" for _ in range(8)]
    return chance.choice(["process", "begins", *later])


def assert_ended_for_good(status: int, errors: str) -> None:
    assert status == 128 + signal.SIGKILL, errors
    assert "The other processes were stopped." in errors
    assert "Restarting" not in errors


def assert_as_if_undisturbed(folder: Path, reference: Path, instances: int) -> None:
    (begun,) = {begin_of(folder, 1, rank) for rank in range(instances)}
    sequence = []
    for rank in range(instances):
        before, after = updates_of(folder, 0, rank), updates_of(folder, 1, rank)
        assert [*after] == [*range(begun, UPDATES)]
        # The first attempt did what the checkpoint contains; the rest is repeated, identically.
        assert [*before] == [*range(len(before))]
        assert begun <= len(before) <= HELD
        whole = {number: before[number] for number in range(begun)} | after
        expected = updates_of(reference, 0, rank)
        assert whole == expected
        assert all(expected[number] == drawn for number, drawn in before.items())
        sequence.append(whole)
        assert_same_state(folder / f"weights-{rank}.pt", reference / f"weights-{rank}.pt")
    for epoch in range(0, UPDATES, 5):
        drawn = [int(index) for number in range(epoch, epoch + 5) for whole in sequence for index in whole[number]]
        assert sorted(drawn) == [*range(SAMPLES)]


def assert_same_state(mine: Path, theirs: Path) -> None:
    state, other = torch.load(mine), torch.load(theirs)
    assert state.keys() == other.keys()
    assert all(torch.equal(tensor, other[name]) for name, tensor in state.items())


def check_end(kill, place: Place, folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    victim = chance.randrange(len(place.hosts))
    assert_ended_for_good(*kill(place, folder, victim, moment_of(chance), updates=WITHOUT_END))


def check_restart(kill, undisturbed, place: Place, folder: Path, seed: int) -> None:
    reference, chance = undisturbed(place), random.Random(seed)
    victim = chance.randrange(len(place.hosts))
    status, errors = kill(place, folder, victim, moment_of(chance), updates=UPDATES, held=HELD, restarts=1)
    assert status == 0, errors
    assert "Restarting the job (attempt 1 of 1)." in errors
    assert_as_if_undisturbed(folder, reference, len(place.hosts))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["process", "update 5"])
def test_a_killed_instance_ends_the_job_with_its_name(kill, here, tmp_path, moment):
    assert_ended_for_good(*kill(here, tmp_path, 1 if moment == "process" else 0, moment, updates=WITHOUT_END))


@pytest.mark.slow
def test_a_restarted_job_reaches_the_weights_of_an_uninterrupted_one(kill, undisturbed, here, tmp_path):
    check_restart(kill, undisturbed, here, tmp_path, 2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_killed_instance_ends_the_job_at_any_moment(kill, here, tmp_path, seed):
    check_end(kill, here, tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_a_job_restarted_at_any_moment_reaches_the_same_weights(kill, undisturbed, here, tmp_path, seed):
    check_restart(kill, undisturbed, here, tmp_path, seed)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), *LONG_SEEDS])
def test_a_killed_instance_ends_a_job_of_two_hosts_at_any_moment(kill, on_two_hosts, tmp_path, seed):
    check_end(kill, on_two_hosts, tmp_path / "job", seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_a_restarted_job_of_two_hosts_reaches_the_same_weights(kill, undisturbed, on_two_hosts, tmp_path, seed):
    check_restart(kill, undisturbed, on_two_hosts, tmp_path / "job", seed)
