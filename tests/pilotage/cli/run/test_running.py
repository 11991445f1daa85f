from __future__ import annotations

import json
from argparse import ArgumentParser

import pytest

import pilotage
from pilotage.cli.main import main
from pilotage.cli.run.arguments import SERVER_OPTIONS, add_arguments
from pilotage.cli.run.poprun import main as poprun
from pilotage.cli.run.running import job_of, notices
from pilotage.distributed.launcher.remote import RemoteShell
from pilotage.errors import OptionError


def parsed(*words: str):
    parser = ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def test_options_become_a_job(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("one\ntwo\n")
    job = job_of(
        parsed(
            f"--host-file={hosts}", "--num-instances=2", "--num-replicas=6", "--ipus-per-replica=2", "--numa-aware=1",
            "--only-output-from-instance=1", "--max-restarts=3", "--offline-mode=yes", "--mpi-local-args=-x A=1 -x B",
            f"--executable-cache-path={tmp_path}", "--", "program", "-x",
        )
    )  # fmt: skip
    assert job.command == ("program", "-x")
    assert (job.instances, job.replicas, job.stages_per_replica, job.hosts) == (2, 6, 2, ("one", "two"))
    assert (job.numa_aware, job.only_output_from, job.max_restarts, job.exported) == (True, 1, 3, ("B",))
    assert job.environment == {
        "A": "1",
        "POPTORCH_CACHE_DIR": str(tmp_path),
        "PILOTAGE_CACHE_DIR": str(tmp_path),
        "PILOTAGE_BACKEND": "cpu",
    }


def test_the_defaults_are_one_instance_and_one_replica():
    job = job_of(parsed("program"))
    assert (job.instances, job.replicas, job.stages_per_replica, job.hosts) == (1, 1, 1, ("localhost",))
    assert job_of(parsed("--num-instances=3", "program")).replicas == 3


def test_the_exchange_timeout_is_passed_to_the_instances():
    assert job_of(parsed("--exchange-timeout=30", "program")).environment == {"PILOTAGE_EXCHANGE_TIMEOUT": "30"}
    with pytest.raises(OptionError, match="at least 1 second"):
        job_of(parsed("--exchange-timeout=0", "program"))


def test_debugging_enables_torchs_distributed_debug_mode():
    assert job_of(parsed("--debug", "program")).environment["TORCH_DISTRIBUTED_DEBUG"] == "DETAIL"


@pytest.mark.parametrize("name", SERVER_OPTIONS)
def test_options_of_a_server_are_accepted_with_one_notice(name):
    flag = f"--{name.replace('_', '-')}"
    (notice,) = notices(parsed(f"{flag}=1", "program"))
    assert flag in notice


def test_options_without_effect_get_one_notice():
    assert notices(parsed("--num-instances=2", "program")) == []
    assert notices(parsed("--ipus-per-replica=2", "program")) == []
    (notice,) = notices(parsed("--vipu-partition=p", "--mpi-global-args=--mca", "program"))
    assert "--vipu-partition, --mpi-global-args" in notice
    assert notices(parsed("--remote-shell=mpirun", "--mpi-global-args=--mca", "program")) == []


def test_hosts_and_their_network_become_part_of_the_job():
    words = ["--remote-shell=mpirun", "--mpi-global-args=--mca x", "--host-subnet=10.0.0.0/8", "--num-ilds=2"]
    job = job_of(parsed(*words, "--host=one,two", "--num-instances=2", "program"))
    assert (job.remote_shell, job.mpirun_arguments) == (RemoteShell.MPIRUN, ("--mca", "x"))
    assert (job.subnet, job.link_domains) == ("10.0.0.0/8", 2)
    assert job.environment == {"PILOTAGE_HOST_SUBNET": "10.0.0.0/8"}
    # Ignored without hosts, as the reference says.
    assert job_of(parsed(*words, "program")).environment == {}


def test_other_arguments_of_mpirun_are_refused():
    with pytest.raises(OptionError, match="'--bind-to'"):
        job_of(parsed("--mpi-local-args=--bind-to none", "program"))


@pytest.mark.parametrize("command", [poprun, lambda words: main(["run", *words])])
def test_versions_have_three_formats(command, capsys):
    assert command(["--version"]) == 0
    assert capsys.readouterr().out == f"poprun of Pilotage {pilotage.__version__}\n"
    assert command(["--version", "--version-format=full-json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {"pilotage", "pilotage-dropins", "torch", "numpy"}
    assert command(["--version", "--version-format=full-text"]) == 0
    assert capsys.readouterr().out.startswith("pilotage ")


def test_a_configuration_is_written_and_nothing_started(tmp_path):
    file = tmp_path / "config"
    assert poprun(["--num-instances=2", f"--export-config={file}", "no-such-program"]) == 0
    assert file.read_text() == "num-instances = 2\n"
    assert poprun([f"--import-config={tmp_path / 'no'}", "program"]) == 2
