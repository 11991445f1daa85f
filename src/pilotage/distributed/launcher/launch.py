"""Run a job and return its exit status."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from pilotage.distributed.environments.variables import number, port_of_job
from pilotage.distributed.interfaces import address_in
from pilotage.distributed.job_directory import JobDirectory
from pilotage.distributed.launcher.commands import command_line, guard_request, instance_variables
from pilotage.distributed.launcher.job import Job, JobProcess, is_here
from pilotage.distributed.launcher.output import TaggedOutput
from pilotage.distributed.launcher.remote import check_remote_shell, chosen_remote_shell
from pilotage.distributed.launcher.running_job import ProcessExit, ProcessStart, RunningJob
from pilotage.errors import OptionError
from pilotage.options.environment import REMOTE_SHELL

Log = Callable[[str], None]


def launch(job: Job, *, warn: Log, inform: Log, detail: Log) -> int:
    """Start all instances, wait for them, restart them if asked to; returns the exit status."""
    check_before_start(job)
    status = 0
    for restart in range(job.max_restarts + 1):
        with JobDirectory.make() if job.on_one_host else nullcontext() as directory:
            status, interrupted = _attempt(job, restart, directory, warn=warn, inform=inform, detail=detail)
        if interrupted or not status:
            return status
        if restart < job.max_restarts:
            warn(f"Restarting the job (attempt {restart + 1} of {job.max_restarts}).")
    return status


def _attempt(
    job: Job, restart: int, directory: JobDirectory | None, *, warn: Log, inform: Log, detail: Log
) -> tuple[int, bool]:
    """Start all instances and wait for them; returns the exit status, and whether a signal ended them."""
    processes = job.processes(*rendezvous_address(job), None if directory is None else str(directory.path))
    output = TaggedOutput(sys.stdout.buffer, sys.stderr.buffer, [_tag(job, process) for process in processes])
    starts = [ProcessStart(command_line(job, process), guard_request(job, process, restart)) for process in processes]
    for process in processes:
        inform(f"{process.name} starts on {process.host}: {' '.join(job.command)}")
        settings = instance_variables(job, process, restart).items()
        detail(f"{process.name} gets {' '.join(f'{name}={shlex.quote(value)}' for name, value in settings)}")
    running = RunningJob(starts, output)
    with running.forwarding_signals():
        failures = running.wait()
    if not failures:
        return 0, False
    warn(_report(failures[0], processes, output))
    for other in _hidden(failures, processes, output):
        warn(_report(other, processes, output, also=True))
    if running.interrupted is not None:
        return 128 + running.interrupted, True
    return failures[0].status, False


def check_before_start(job: Job) -> None:
    """Refuse a job that cannot work, in one line and before anything starts."""
    program = job.command[0]
    if job.on_one_host:
        if shutil.which(program) is None:
            raise OptionError(f"The program {program!r} was not found or is not executable. Nothing was started.")
        script = next((word for word in job.command[1:] if not word.startswith("-")), "")
        is_python = Path(program).name.startswith("python") and job.command[1:2] == (script,)
        if is_python and script.endswith(".py") and not Path(script).is_file():
            raise OptionError(f"The script {script!r} was not found. Nothing was started.")
    if REMOTE_SHELL.name in os.environ:
        # The command may have its own names for hosts.
        return
    if not job.on_one_host:
        check_remote_shell(job.remote_shell or chosen_remote_shell(os.environ), os.environ)
    for host in job.hosts:
        _check_host(host)


def rendezvous_address(job: Job) -> tuple[str, int]:
    """The address and port where the instances meet: on the first host, at MASTER_PORT or a free port."""
    chosen = number(os.environ, "MASTER_PORT", 0)
    address = os.environ.get("MASTER_ADDR") or _address(job)
    if not is_here(job.hosts[0]):
        return address, chosen or port_of_job(f"{socket.gethostname()}.{os.getpid()}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", chosen))
        except OSError:
            raise OptionError(
                f"The port {chosen} is taken. Set MASTER_PORT to a free one, or leave it out. Nothing was started."
            ) from None
        port: int = probe.getsockname()[1]
        return address, port


def _address(job: Job) -> str:
    if job.on_one_host:
        return "127.0.0.1"
    if job.subnet is None or not is_here(job.hosts[0]):
        return job.hosts[0]
    return address_in(job.subnet)


def _check_host(host: str) -> None:
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        raise OptionError(f"The host {host!r} is not known: {error.strerror}. Nothing was started.") from None


def _tag(job: Job, process: JobProcess) -> int | None:
    """The rank that tags the output of a process; None hides the output."""
    rank = process.world.rank
    return rank if process.shows_output and job.only_output_from in (None, rank) else None


def _hidden(failures: list[ProcessExit], processes: list[JobProcess], output: TaggedOutput) -> list[ProcessExit]:
    """Later failures whose output is hidden: the first one to fail may only have noticed what another one did."""
    reported = {_last_line(failures[0], output)}
    reported |= {_last_line(failure, output) for failure in failures if processes[failure.process].shows_output}
    found = []
    for failure in failures[1:]:
        line = _last_line(failure, output)
        if not processes[failure.process].shows_output and line not in reported:
            found.append(failure)
            reported.add(line)
    return found


def _last_line(failure: ProcessExit, output: TaggedOutput) -> str:
    lines = output.last_lines(failure.process)
    # torch prefixes the lines of a traceback with the rank.
    return re.sub(r"^\[rank\d+\]: ", "", lines[-1]) if lines else ""


def _report(ending: ProcessExit, processes: list[JobProcess], output: TaggedOutput, *, also: bool = False) -> str:
    how = f"with status {ending.status}"
    if 128 < ending.status <= 128 + signal.NSIG:
        how = f"by signal {_signal_name(ending.status - 128)}"
    process = processes[ending.process]
    first = f"{process.name} on {process.host} {'failed too' if also else 'was the first to fail'}, {how}."
    others = " The other processes were stopped." if len(processes) > 1 and not also else ""
    lines = output.last_lines(ending.process)
    said = "\n".join(["Its last lines:", *(f"    {line}" for line in lines)]) if lines else "It printed nothing."
    return f"{first}{others} {said}"


def _signal_name(number_: int) -> str:
    try:
        return signal.Signals(number_).name
    except ValueError:
        return str(number_)
