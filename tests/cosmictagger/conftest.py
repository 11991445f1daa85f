"""Fixtures of the application's tests."""

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

LAUNCHER_VARIABLES = (
    "POPDIST_NUM_TOTAL_REPLICAS",
    "RANK",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "SLURM_STEP_ID",
    "PMI_RANK",
)


@pytest.fixture(autouse=True)
def started_by_nobody(monkeypatch):
    """Remove variables of launchers, and undo what a run sets for vendors' packages."""
    for name in LAUNCHER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("PT_HPU_LAZY_MODE", "PILOTAGE_TIER", "ID", "LOCAL_RANK"):
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PILOTAGE_BACKEND", "cpu")


@pytest.fixture(scope="session")
def few_events(tmp_path_factory) -> Path:
    """A folder for generated files, which the first run creates."""
    return tmp_path_factory.mktemp("generated") / "events"


@pytest.fixture
def real_events() -> Path:
    """Five events of the detector's simulation; a file that we may not redistribute."""
    place = os.environ.get("COSMICTAGGER_REAL_FILE", "")
    if not Path(place).is_file():
        pytest.skip("COSMICTAGGER_REAL_FILE names no file")
    return Path(place)


EXEC = Path(__file__).parents[2] / "bin" / "exec.py"


class Started:
    """The processes of a command under a launcher, and their results."""

    def __init__(self, folder, words, by, instances, environment):
        script = [sys.executable, str(EXEC), *words]
        self.logs, self.processes = [], []
        for command, variables in LAUNCHERS[by](script, instances):
            self.logs.append(folder / f"{len(list(folder.iterdir()))}.log")
            known = os.environ | {"OMP_NUM_THREADS": "1"} | environment | variables
            with self.logs[-1].open("w") as log:
                self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=known))

    def said(self):
        """All output so far."""
        return "".join(log.read_text() for log in self.logs)

    def finish(self):
        """The exit codes and all output."""
        codes = [process.wait() for process in self.processes]
        return codes, self.said()

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def by_poprun(script, instances, replicas=1):
    counts = [f"--num-instances={instances}", f"--num-replicas={instances * replicas}", "--max-restarts=1"]
    yield [sys.executable, "-m", "pilotage.cli.run.poprun", *counts, *script], {}


def by_torchrun(script, instances):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(instances), "--max-restarts=1"]
    yield [*launcher, "--master-port", str(free_port()), *script[1:]], {}


def by_mpirun(script, instances):
    """Like OpenMPI's mpirun."""
    job = str(free_port())
    for rank in range(instances):
        variables = {"RANK": rank, "LOCAL_RANK": rank, "SIZE": instances, "LOCAL_SIZE": instances}
        yield (
            script,
            {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in variables.items()} | {"MASTER_PORT": job},
        )


def by_srun(script, instances):
    """Like SLURM's srun."""
    port = str(free_port())
    for rank in range(instances):
        variables = {
            "STEP_ID": 0,
            "JOB_ID": 7,
            "PROCID": rank,
            "LOCALID": rank,
            "NTASKS": instances,
            "STEP_NODELIST": "localhost",
        }
        yield script, {f"SLURM_{name}": str(value) for name, value in variables.items()} | {"MASTER_PORT": port}


def by_nobody(script, instances):
    yield script, {}


LAUNCHERS = {
    "poprun": by_poprun,
    "poprun with pairs": partial(by_poprun, replicas=2),
    "torchrun": by_torchrun,
    "mpirun": by_mpirun,
    "srun": by_srun,
    "nobody": by_nobody,
}


@pytest.fixture(name="free_port")
def unused_port():
    """A port that nobody listens on."""
    return free_port()


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.fixture
def start(tmp_path_factory):
    """Starts the command in new processes, which end with the test at the latest."""
    running, folder = [], tmp_path_factory.mktemp("logs")

    def begin(*words, by="nobody", instances=1, **environment):
        running.append(Started(folder, words, by, instances, environment))
        return running[-1]

    yield begin
    for each in running:
        each.end()
