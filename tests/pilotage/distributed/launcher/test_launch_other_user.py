"""A second user of the host tries to read, join and poison a job."""

from __future__ import annotations

import os
import re
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")]

SCRIPT = """
import os, sys
import torch
from pilotage.distributed.peers import peers_here

peers = peers_here()
print("begins", os.getpid(), flush=True)
if peers.world.rank == 1:
    # Until the attacker has come.
    open(sys.argv[1]).read()
peers.join()
if len(sys.argv) > 2:
    print("joined", os.getpid(), flush=True)
    open(f"{sys.argv[2]}{peers.world.rank}").read()
everyone = peers.gather(("from", peers.world.rank))
total = torch.full((3,), peers.world.rank + 1.0)
peers.sum(total)
print("result", total.tolist(), everyone, flush=True)
"""
RIGHT = "result [3.0, 3.0, 3.0] [('from', 0), ('from', 1)]"


def other_user() -> ModuleType:
    spec = spec_from_file_location("other_user", Path(__file__).with_name("other_user.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OTHER = other_user()


class Attacked:
    """A job of two instances, the second of which waits for the attacker."""

    def __init__(self, start_poprun, folder: Path, *, late: bool = False, timeout: int = 5) -> None:
        self.late = late
        self.marker = str(folder / "executed")
        self.gates = [folder / "gate", *(folder / f"later{rank}" for rank in range(2))]
        for gate in self.gates:
            os.mkfifo(gate)
        script = folder / "script.py"
        script.write_text(SCRIPT)
        words = (self.gates[0], folder / "later") if late else (self.gates[0],)
        self.process = start_poprun(
            "--num-instances=2",
            f"--exchange-timeout={timeout}",
            "--mpi-local-args=-x API_KEY",
            sys.executable,
            script,
            *words,
            API_KEY="a-secret-of-mine",
            TORCH_CPP_LOG_LEVEL="ERROR",
        )
        self.instances = self._told("begins")
        if late:
            self.gates[0].write_text("")
            self._told("joined")
        self.ports = wait_for_ports(self.instances if late else self.instances[:1])

    def _told(self, word: str) -> list[int]:
        """The processes that have printed something, by rank."""
        lines = [self.process.stdout.readline() for _ in range(2)]
        return [int(pid) for _, pid in sorted(re.findall(rf"\[1,(\d)\]<stdout>:{word} (\d+)", " ".join(lines)))]

    def pids(self) -> list[int]:
        guards = [int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in self.instances]
        return [self.process.pid, *guards, *self.instances]

    def finish(self, *gates: int) -> tuple[int, str, str]:
        for number in gates:
            self.gates[number].write_text("")
        out, err = self.process.communicate(timeout=100)
        return self.process.returncode, out, err


def wait_for_ports(pids: list[int]) -> list[int]:
    """Where processes listen, once all of them do."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = [listening(pid) for pid in pids]
        if all(found):
            return [port for ports in found for port in ports]
    raise AssertionError("the instances do not listen")


def listening(pid: int) -> list[int]:
    own = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            own.add(os.readlink(entry.path))
        except OSError:
            continue
    lines = [
        line for table in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    fields = [line.split() for line in lines]
    return [int(each[1].split(":")[1], 16) for each in fields if each[3] == "0A" and f"socket:[{each[9]}]" in own]


def check_that_nothing_came_of_it(job: Attacked, status: int, out: str, err: str) -> None:
    """The job ended with right results, or with an error and no results; no foreign code ran."""
    assert not Path(job.marker).exists()
    results = re.findall(r"result .*", out)
    assert set(results) <= {RIGHT}, out
    assert (status == 0) == (len(results) == 2), (out, err)
    if status:
        assert "DistributedError" in err or "by signal SIGABRT" in err, err


def test_another_user_cannot_read_or_join_a_job(start_poprun, tmp_path):
    job = Attacked(start_poprun, tmp_path, timeout=60)
    pids, ports, marker = job.pids(), job.ports, job.marker

    def attack():
        found = OTHER.read(pids)
        return found, OTHER.join_as_rank_1(ports, " ".join(found.values()), marker)

    found, joined = OTHER.as_another_user(attack)()
    status, out, err = job.finish(0)
    assert not Path(marker).exists()
    assert not joined
    assert sorted(found) == sorted(f"/proc/{pid}/cmdline" for pid in pids), found
    told = " ".join(found.values())
    for secret in ("MASTER_PORT", "a-secret-of-mine", "pilotage-job", "POPDIST"):
        assert secret not in told
    check_that_nothing_came_of_it(job, status, out, err)
    assert status == 0, err


def attack_gloo(job: Attacked, junk: bytes, answers: bool) -> tuple[int, int, str, str]:
    ports = job.ports

    def attack():
        connections = OTHER.connect(ports, junk)
        os.write(connected, b"x")
        return OTHER.answer_everything(connections, 20) if answers else len(connections)

    came, connected = os.pipe()
    result = OTHER.as_another_user(attack)
    os.close(connected)
    os.read(came, 1)
    os.close(came)
    status, out, err = job.finish(*((1, 2) if job.late else (0,)))
    return result(), status, out, err


def test_another_user_who_connects_as_a_peer_is_detected(start_poprun, tmp_path):
    job = Attacked(start_poprun, tmp_path)
    check_that_the_impostor_was_noticed(job, *attack_gloo(job, b"", answers=True))


def check_that_the_impostor_was_noticed(job: Attacked, messages: int, status: int, out: str, err: str) -> None:
    check_that_nothing_came_of_it(job, status, out, err)
    # Gloo decides by address who connects to whom; if rank 0 connects, there is nothing to attack.
    assert status if messages else not status, (out, err)
    assert ("does not have the key of this job" in err) == bool(messages), err


JUNK = {
    "silence": b"",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "a message that is too long": OTHER.HEADER.pack(1 << 62, 1, 0, 0, 1 << 62, 0),
    "a write outside of the buffer": OTHER.HEADER.pack(OTHER.HEADER.size + 64, 0, 0, 0, 64, 1 << 40) + b"A" * 64,
    "an unknown operation": OTHER.HEADER.pack(OTHER.HEADER.size, 99, 0, 0, 0, 0),
}


@pytest.mark.long
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_data_from_another_user_is_never_run_or_used(start_poprun, tmp_path, junk, late):
    job = Attacked(start_poprun, tmp_path, late=late)
    _, status, out, err = attack_gloo(job, junk, answers=False)
    check_that_nothing_came_of_it(job, status, out, err)
    if late:
        assert status == 0, err


@pytest.mark.long
@pytest.mark.parametrize("attempt", range(10))
def test_impostors_are_always_detected(start_poprun, tmp_path, attempt):
    job = Attacked(start_poprun, tmp_path)
    check_that_the_impostor_was_noticed(job, *attack_gloo(job, b"", answers=True))
