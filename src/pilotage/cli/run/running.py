"""Run `poprun`: turn its options into a job and launch it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from argparse import Namespace
from datetime import datetime
from importlib import metadata
from pathlib import Path

import pilotage
from pilotage.cli.run.arguments import SERVER_OPTIONS
from pilotage.cli.run.configuration import export_configuration, with_imported
from pilotage.cli.run.small_files import read_small_file
from pilotage.distributed.host_list import expand_hosts
from pilotage.distributed.launcher.job import Job
from pilotage.distributed.launcher.launch import launch
from pilotage.distributed.launcher.remote import RemoteShell
from pilotage.distributed.launcher.topology import topology
from pilotage.errors import OptionError
from pilotage.options.environment import EXCHANGE_TIMEOUT, HOST_SUBNET, MAX_EXCHANGE_SECONDS

__all__ = ["job_of", "notices", "run"]

_USAGE = 2


def run(given: Namespace) -> int:
    """Run the command; returns the exit status of the job."""
    options = with_imported(given)
    if options.version:
        print(_version(options.version_format or "text"))
        return 0
    if options.export_config is not None:
        export_configuration(options)
        return 0
    try:
        job = job_of(options)
    except OptionError as error:
        _log("E", str(error))
        return _USAGE
    for notice in notices(options):
        _log("W", notice)
    verbosity = options.verbose or 0
    if options.print_topology or (options.print_topology is None and verbosity):
        print(topology(job), flush=True)
    try:
        return launch(
            job,
            warn=lambda text: _log("E", text),
            inform=lambda text: _log("I", text, verbosity >= 1),
            detail=lambda text: _log("D", text, verbosity >= 2),
        )
    except OptionError as error:
        _log("E", str(error))
        return _USAGE


def job_of(options: Namespace) -> Job:
    """The job that these options describe."""
    instances = _or_one(options.num_instances)
    return Job(
        command=tuple(options.program[1:] if options.program[:1] == ["--"] else options.program),
        instances=instances,
        replicas=instances if options.num_replicas is None else options.num_replicas,
        stages_per_replica=_or_one(options.ipus_per_replica),
        hosts=_hosts(options),
        remote_shell=None if options.remote_shell is None else RemoteShell(options.remote_shell),
        mpirun_arguments=tuple(shlex.split(options.mpi_global_args or "")),
        subnet=options.host_subnet,
        link_domains=options.num_ilds,
        environment=_environment(options),
        exported=tuple(name for name, value in _local_variables(options).items() if value is None),
        numa_aware=bool(options.numa_aware),
        only_output_from=options.only_output_from_instance,
        max_restarts=options.max_restarts or 0,
    )


def notices(options: Namespace) -> list[str]:
    """Warnings about options that have no effect."""
    given = [name for name in SERVER_OPTIONS if getattr(options, name) is not None]
    if options.mpi_global_args is not None and options.remote_shell != RemoteShell.MPIRUN.value:
        given.append("mpi_global_args")
    found = []
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        found.append(f"Without effect, since there is no V-IPU server and no mpirun: {flags}.")
    return found


def _hosts(options: Namespace) -> tuple[str, ...]:
    if options.host is not None:
        return tuple(expand_hosts(options.host))
    if options.host_file is None:
        return ("localhost",)
    return tuple(expand_hosts(",".join(read_small_file(options.host_file, "host file").split())))


def _names_hosts(options: Namespace) -> bool:
    return options.host is not None or options.host_file is not None


def _environment(options: Namespace) -> dict[str, str]:
    found = {name: value for name, value in _local_variables(options).items() if value is not None}
    if options.executable_cache_path is not None:
        directory = str(Path(options.executable_cache_path).expanduser().absolute())
        found |= {"POPTORCH_CACHE_DIR": directory, "PILOTAGE_CACHE_DIR": directory}
    if options.host_subnet is not None and _names_hosts(options):
        found[HOST_SUBNET.name] = options.host_subnet
    if options.exchange_timeout is not None:
        if not 1 <= options.exchange_timeout <= MAX_EXCHANGE_SECONDS:
            raise OptionError(
                f"--exchange-timeout is {options.exchange_timeout}. "
                f"It must be at least 1 second and at most {MAX_EXCHANGE_SECONDS}."
            )
        found[EXCHANGE_TIMEOUT.name] = str(options.exchange_timeout)
    if options.offline_mode:
        found["PILOTAGE_BACKEND"] = "cpu"
    if options.debug:
        found |= {"TORCH_DISTRIBUTED_DEBUG": "DETAIL", "NCCL_DEBUG": "INFO", "PILOTAGE_LOG_LEVEL": "DEBUG"}
    return found


def _local_variables(options: Namespace) -> dict[str, str | None]:
    """The variables in --mpi-local-args; None for those without a value."""
    words = shlex.split(options.mpi_local_args or "")
    found: dict[str, str | None] = {}
    while words:
        word = words.pop(0)
        if word != "-x" or not words:
            raise OptionError(
                f"--mpi-local-args has {word!r}. mpirun does not start the instances: use only -x VAR or -x VAR=VALUE."
            )
        name, equals, value = words.pop(0).partition("=")
        found[name] = value if equals else None
    return found


def _or_one(number: int | None) -> int:
    return 1 if number is None else number


def _version(form: str) -> str:
    if form == "text":
        return f"poprun of Pilotage {pilotage.__version__}"
    parts = {
        "pilotage": pilotage.__version__,
        **{name: _version_of(name) for name in ("pilotage-dropins", "torch", "numpy")},
    }
    return (
        json.dumps(parts) if form == "full-json" else "\n".join(f"{name} {version}" for name, version in parts.items())
    )


def _version_of(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _log(level: str, text: str, shown: bool = True) -> None:
    if shown:
        time = datetime.now().strftime("%H:%M:%S.%f")[:-3]
        print(f"{time} {os.getpid()} POPRUN [{level}] {text}", file=sys.stderr, flush=True)
